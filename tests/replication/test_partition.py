"""A partition over a log on a disk in memory, with the flusher that brokers use."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.replication.manager_kit import NoFlusher
from tests.replication.roles import follower_of, leader_of
from tests.storage.batches import NOW_MS, append, open_log, produced

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.replication.followers import FollowerFetch, Followers
from ottla.replication.partition import READ_HINTS_MAX, FlushPolicy, Partition
from ottla.replication.partition_leader import ACKS_ALL, PartitionLeader
from ottla.runtime.flusher import Flusher
from ottla.storage.appended import Appended
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.reading import ReadHint


class LeaderKit:
    """A led partition whose syncs can be waited for."""

    def __init__(
        self,
        policy: FlushPolicy,
        config: LogConfig | None = None,
        replicas: tuple[int, ...] = (1,),
        isr: tuple[int, ...] = (1,),
    ) -> None:
        self.replicas, self.isr = replicas, isr
        self.partition_epoch = 0
        loop = asyncio.get_running_loop()
        self.disk = FaultyFilesystem()
        self.executor = ThreadPoolExecutor(1)
        self.errors: list[BaseException] = []
        flusher = Flusher(loop, self.executor, lambda log, error: self.errors.append(error))
        self.flusher = flusher
        self.partition = Partition(open_log(self.disk, config), policy, flusher)
        self.lead(3)

    @property
    def leader(self) -> PartitionLeader:
        return leader_of(self.partition)

    def is_behind_its_epoch(self) -> bool:
        return self.leader.is_behind_its_epoch

    def lead(self, leader_epoch: int) -> None:
        followers = None
        if len(self.replicas) > 1:
            start = self.partition.log.log_end_offset
            followers = Followers(1, start, lambda replica, epoch: True, 1000)
            followers.update(self.replicas, self.isr, self.partition_epoch, 0)
        self.partition.become_leader(leader_epoch, self.isr, followers)

    def set_isr(self, *isr: int) -> None:
        partition = self.partition
        assert partition.followers is not None
        self.partition_epoch += 1
        partition.followers.update(self.replicas, isr, self.partition_epoch, 0)
        partition.become_leader(partition.leader_epoch, isr, partition.followers)

    def fetch(self, replica: int, offset: int, log_start_offset: int = 0) -> None:
        fetch = FollowerFetch(replica, 7, offset, log_start_offset)
        self.leader.on_follower_fetch(fetch, now_ms=0)

    async def synced(self) -> None:
        """Everything appended is on disk, and the partition knows."""
        synced = asyncio.Event()
        self.flusher.request(self.partition.log, synced.set)
        await synced.wait()

    def append(self, *values: bytes) -> Appended:
        return self.leader.append(*produced(*values), NOW_MS)

    async def acknowledged(self, appended: Appended, acks: int) -> ApiError | None:
        outcome: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
        self.leader.wait_for_acknowledgement(appended, acks, outcome.set_result)
        return await outcome


@pytest.mark.parametrize("acks", [1, ACKS_ALL])
def test_with_the_ack_policy_an_append_is_acknowledged_and_seen_after_its_sync(acks: int) -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK)
        appended = kit.append(b"one", b"two")
        assert not kit.leader.acknowledged(appended, acks)
        assert kit.partition.read(0, 1000, committed_only=False) is None
        assert await kit.acknowledged(appended, acks) is None
        assert kit.partition.log.flushed_offset == 2
        found = kit.partition.read(0, 1000, committed_only=False)
        assert found is not None
        assert found.next_offset == 2

    asyncio.run(run())


@pytest.mark.parametrize("policy", [FlushPolicy.OS, FlushPolicy.INTERVAL])
def test_with_the_other_policies_an_append_is_acknowledged_at_once(policy: FlushPolicy) -> None:
    async def run() -> None:
        kit = LeaderKit(policy)
        appended = kit.append(b"one")
        assert kit.leader.acknowledged(appended, 1)
        assert kit.leader.acknowledged(appended, ACKS_ALL)
        assert kit.partition.log.flushed_offset == 0

    asyncio.run(run())


def test_flush_messages_of_one_is_a_sync_before_every_acknowledgement() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_messages=1))
        appended = kit.append(b"one")
        assert not kit.leader.acknowledged(appended, 1)
        assert await kit.acknowledged(appended, ACKS_ALL) is None
        assert kit.partition.log.flushed_offset == 1

    asyncio.run(run())


def test_after_so_many_messages_the_log_is_synced() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_messages=3))
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kit.leader.flushed_waiters.add(3, lambda error: synced.set_result(None))
        for value in (b"one", b"two", b"three"):
            assert kit.partition.log.flushed_offset == 0
            assert kit.leader.acknowledged(kit.append(value), ACKS_ALL)
        await synced
        assert kit.partition.log.flushed_offset == 3

    asyncio.run(run())


def test_after_so_long_the_log_is_synced() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_ms=1000))
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kit.partition.maybe_flush(now_ms=5_000)
        kit.append(b"one")
        kit.leader.flushed_waiters.add(1, lambda error: synced.set_result(None))
        kit.partition.maybe_flush(now_ms=5_999)
        await asyncio.sleep(0)
        assert kit.partition.log.flushed_offset == 0
        kit.partition.maybe_flush(now_ms=6_000)
        await synced
        assert kit.partition.log.flushed_offset == 1

    asyncio.run(run())


def test_appends_during_a_sync_are_covered_by_the_next_one() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK)
        first = kit.append(b"one")
        waiting = asyncio.ensure_future(kit.acknowledged(first, ACKS_ALL))
        await asyncio.sleep(0)
        second = kit.append(b"two")
        assert await waiting is None
        assert await kit.acknowledged(second, ACKS_ALL) is None
        assert kit.partition.log.high_watermark == 2

    asyncio.run(run())


def test_resigning_answers_those_who_wait() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK)
        outcomes: list[ApiError | None] = []
        woken: list[bool] = []
        kit.leader.wait_for_acknowledgement(kit.append(b"one"), ACKS_ALL, outcomes.append)
        kit.partition.wait_for_data(lambda: woken.append(True))
        error = ApiError(ErrorCode.not_leader_or_follower)
        kit.partition.resign(error)
        assert outcomes == [error]
        assert woken == [True]
        assert not kit.partition.is_leader

    asyncio.run(run())


@pytest.mark.parametrize(
    ("expected", "code"),
    [
        (2, ErrorCode.fenced_leader_epoch),
        (4, ErrorCode.unknown_leader_epoch),
        (3, None),
        (-1, None),
    ],
)
def test_the_leader_epoch_that_a_client_knows_is_checked(
    expected: int, code: ErrorCode | None
) -> None:
    async def run() -> None:
        partition = LeaderKit(FlushPolicy.OS).partition
        if code is None:
            partition.validate_leader_epoch(expected)
            return
        with pytest.raises(ApiError) as refused:
            partition.validate_leader_epoch(expected)
        assert refused.value.code == code

    asyncio.run(run())


def test_too_few_in_sync_replicas_are_refused() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(min_insync_replicas=2), replicas=(1, 2, 3))
        with pytest.raises(ApiError) as refused:
            kit.leader.validate_in_sync_replicas()
        assert refused.value.code == ErrorCode.not_enough_replicas
        kit.set_isr(1, 2)
        kit.leader.validate_in_sync_replicas()

    asyncio.run(run())


def test_not_more_in_sync_replicas_are_required_than_there_are_replicas() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(min_insync_replicas=2))
        kit.leader.validate_in_sync_replicas()
        assert kit.leader.acknowledged(kit.append(b"one"), ACKS_ALL)

    asyncio.run(run())


@pytest.mark.parametrize("policy", list(FlushPolicy))
def test_what_every_in_sync_replica_has_is_acknowledged(policy: FlushPolicy) -> None:
    async def run() -> None:
        kit = LeaderKit(policy, replicas=(1, 2, 3), isr=(1, 2, 3))
        appended = kit.append(b"one")
        await kit.synced()
        assert not kit.leader.acknowledged(appended, ACKS_ALL)
        kit.fetch(2, 1)
        assert not kit.leader.acknowledged(appended, ACKS_ALL)
        kit.fetch(3, 1)
        assert kit.leader.acknowledged(appended, ACKS_ALL)
        assert kit.partition.read(0, 1000, committed_only=False) is not None

    asyncio.run(run())


def test_with_the_ack_policy_the_leader_counts_when_it_has_synced() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK, replicas=(1, 2), isr=(1, 2))
        appended = kit.append(b"one")
        kit.fetch(2, 1)
        assert not kit.leader.acknowledged(appended, ACKS_ALL)
        assert kit.partition.log.high_watermark == 0
        assert await kit.acknowledged(appended, ACKS_ALL) is None
        assert kit.partition.log.high_watermark == 1

    asyncio.run(run())


def test_nothing_is_acknowledged_while_too_few_are_in_sync() -> None:
    """There were enough when the record was appended."""

    async def run() -> None:
        kit = LeaderKit(
            FlushPolicy.OS, LogConfig(min_insync_replicas=2), replicas=(1, 2, 3), isr=(1, 2)
        )
        kit.leader.validate_in_sync_replicas()
        appended = kit.append(b"one")
        kit.set_isr(1)
        assert not kit.leader.acknowledged(appended, ACKS_ALL)
        kit.fetch(2, 1)
        assert not kit.leader.acknowledged(appended, ACKS_ALL)
        kit.set_isr(1, 2)
        assert kit.leader.acknowledged(appended, ACKS_ALL)

    asyncio.run(run())


def test_a_new_leader_does_not_know_what_is_committed_until_followers_fetch() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        kit.append(b"one", b"two")
        assert not kit.is_behind_its_epoch()
        kit.lead(4)
        assert kit.is_behind_its_epoch()
        kit.fetch(2, 1)
        assert kit.is_behind_its_epoch()
        kit.fetch(2, 2)
        assert not kit.is_behind_its_epoch()

    asyncio.run(run())


def test_records_are_deleted_when_every_live_replica_has_deleted_them() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2, 3), isr=(1, 2, 3))
        kit.append(b"one", b"two")
        kit.fetch(2, 2)
        kit.fetch(3, 2)
        kit.partition.log.delete_records_before(1)
        outcomes: list[ApiError | None] = []
        heard: list[bool] = []
        kit.partition.listen_to_appends(heard.append)
        kit.leader.on_deleted(1, outcomes.append)
        assert heard == [True]
        kit.fetch(2, 2, log_start_offset=1)
        assert (outcomes, kit.leader.low_watermark) == ([], 0)
        kit.fetch(3, 2, log_start_offset=1)
        assert (outcomes, kit.leader.low_watermark) == ([None], 1)
        kit.leader.on_deleted(1, outcomes.append)
        assert outcomes == [None, None]

    asyncio.run(run())


def test_in_a_new_epoch_followers_have_to_fetch_again() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        kit.append(b"one")
        kit.fetch(2, 1)
        kit.lead(4)
        kit.append(b"two")
        assert kit.partition.log.high_watermark == 1
        kit.fetch(2, 2)
        assert kit.partition.log.high_watermark == 2

    asyncio.run(run())


def test_a_follower_reads_to_the_end_of_the_log() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        kit.append(b"one", b"two")
        assert kit.partition.read(0, 1000, committed_only=False) is None
        found = kit.partition.read_to_end(0, 1000)
        assert found is not None
        assert found.next_offset == 2
        assert kit.partition.read_to_end(2, 1000) is None
        with pytest.raises(ApiError) as refused:
            kit.partition.read_to_end(3, 1000)
        assert refused.value.code == ErrorCode.offset_out_of_range

    asyncio.run(run())


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "diverging"),
    [
        (2, 3, None),
        (3, 3, EpochEndOffset(3, 2)),  # It has one more of the epoch than the leader.
        (3, 4, EpochEndOffset(3, 2)),  # It has an epoch that the leader lacks.
        (2, 6, None),
        (9, -1, None),
        (4, 6, EpochEndOffset(6, 3)),
        (1, 2, EpochEndOffset(2, 0)),  # It has an epoch from before all of the leader's.
    ],
)
def test_a_follower_hears_where_its_log_leaves_the_leaders(
    offset: int, last_fetched_epoch: int, diverging: EpochEndOffset | None
) -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        kit.append(b"one", b"two")
        kit.lead(6)
        kit.append(b"three")
        assert kit.partition.divergence(offset, last_fetched_epoch) == diverging

    asyncio.run(run())


def test_those_who_copy_hear_of_appends_progress_and_the_end() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        heard: list[bool] = []
        kit.partition.listen_to_appends(heard.append)
        kit.append(b"one")
        assert heard == [False]
        kit.fetch(2, 1)
        assert heard == [False, True]
        kit.partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        assert heard == [False, True, False]
        kit.partition.forget_listener(heard.append)
        kit.lead(5)
        assert heard == [False, True, False]

    asyncio.run(run())


def test_a_sync_that_ends_after_the_leadership_commits_nothing() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK)
        kit.append(b"one")
        kit.partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        await kit.synced()
        assert kit.partition.log.flushed_offset == 1
        assert kit.partition.log.high_watermark == 0

    asyncio.run(run())


def test_a_partition_leads_or_follows_or_neither() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS)
        partition, first = kit.partition, kit.leader
        assert (partition.is_leader, partition.follower) == (True, None)
        kit.lead(4)
        assert partition.leader is first, "who waits goes on waiting while nobody else leads"
        partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        assert (partition.is_leader, partition.followers, partition.follower) == (False, None, None)
        partition.become_follower(5)
        assert (partition.is_leader, follower_of(partition).partition) == (False, partition)
        kit.lead(6)
        assert partition.leader is not first
        assert partition.follower is None

    asyncio.run(run())


def test_a_follower_takes_the_high_watermark_as_far_as_its_log_goes() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, replicas=(1, 2), isr=(1, 2))
        kit.append(b"one", b"two")
        kit.partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        kit.partition.become_follower(4)
        woken: list[bool] = []
        kit.partition.wait_for_data(lambda: woken.append(True))
        for offset, expected in ((1, 1), (0, 1), (9, 2)):
            follower_of(kit.partition).advance_high_watermark(offset)
            assert kit.partition.log.high_watermark == expected
        assert woken == [True, True]

    asyncio.run(run())


@pytest.mark.parametrize("offset", [-1, 2])
def test_an_offset_outside_the_log_is_refused(offset: int) -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS)
        kit.append(b"one")
        with pytest.raises(ApiError) as refused:
            kit.partition.read(offset, 1000, committed_only=False)
        assert refused.value.code == ErrorCode.offset_out_of_range

    asyncio.run(run())


def test_readers_at_many_offsets_each_get_their_own_bytes() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS)
        for number in range(200):
            kit.append(b"%d" % number)
        offsets = dict.fromkeys(range(0, 200, 2))
        for _ in range(3):
            for offset in offsets:
                found = kit.partition.read(offset, 1, committed_only=False)
                assert found is not None
                assert found.next_offset == offset + 1

    asyncio.run(run())


class OvertakenDict(dict[int, ReadHint]):
    """Another thread always changes it between the two steps of `next(iter(...))`."""

    def __iter__(self) -> Iterator[int]:
        keys = super().__iter__()
        self.pop(next(iter(list(self.keys()))))
        return keys


def test_a_read_succeeds_though_another_thread_changes_the_hints() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS)
        count = READ_HINTS_MAX + 10
        for index in range(count):
            kit.append(b"%d" % index)
        kit.partition._read_hints = OvertakenDict()
        for offset in range(count):
            found = kit.partition.read(offset, 1, committed_only=False)
            assert found is not None
            assert found.next_offset == offset + 1

    asyncio.run(run())


def test_a_follower_that_asks_again_for_what_it_got_has_it_checked() -> None:
    filesystem = FaultyFilesystem()
    log = open_log(filesystem)
    append(log, b"a" * 40)
    log.flush()
    partition = Partition(log, FlushPolicy.OS, NoFlusher())
    partition.become_leader(0, (1,))
    leader = leader_of(partition)
    leader.on_asked(2, 0)
    assert log.segments[0].unverified == ()
    filesystem.flip_bit(log.segments[0].path, 80)
    assert partition.read_to_end(0, 1000) is not None, "nobody looks at what was verified"
    leader.sent_offsets[2] = 0
    leader.on_asked(2, 0)
    with pytest.raises(ApiError, match="checksum"):
        partition.read_to_end(0, 1000)
    assert [suspect.base_offset for suspect in log.log_directory.suspects] == [0]


def test_what_another_thread_syncs_while_a_sync_is_heard_of_is_acknowledged() -> None:
    """A checkpoint may sync the log at any moment."""
    ended: list[Callable[[], None]] = []

    class ByHand:
        def request(self, _log: object, callback: Callable[[], None]) -> None:
            ended.append(callback)

    partition = Partition(open_log(FaultyFilesystem()), FlushPolicy.ACK, ByHand())
    partition.become_leader(3, (1,))
    log, leader = partition.log, leader_of(partition)
    acknowledged: list[ApiError | None] = []

    def flush(_error: ApiError | None) -> None:
        log.flush()

    first = leader.append(*produced(b"one"), NOW_MS)
    log.flush()
    second = leader.append(*produced(b"two"), NOW_MS)
    leader.wait_for_acknowledgement(first, ACKS_ALL, flush)
    leader.wait_for_acknowledgement(second, ACKS_ALL, acknowledged.append)
    while ended:
        ended.pop()()
    assert acknowledged == [None]


def test_what_is_written_to_a_leader_is_told_from_what_it_copied() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(segment_bytes=300))
        partition = kit.partition

        def write(*values: bytes) -> int:
            records, header = produced(*values)
            kit.leader.append(records, header, NOW_MS)
            return len(records)

        size = sum(write(b"a", b"b") for _ in range(10))  # Segments are rolled meanwhile.
        assert len(partition.log.segments) > 1
        assert partition.led_growth() == (20, size)
        kit.lead(4)
        assert partition.led_growth() == (20, size)

        partition.resign(ApiError(ErrorCode.not_leader_or_follower))
        append(partition.log, b"copied")
        assert partition.led_growth() == (0, 0)
        kit.lead(6)
        size += write(b"c")
        traffic = partition.traffic
        assert partition.led_growth()[0] + traffic.led_records == 21
        assert partition.led_growth()[1] + traffic.led_bytes == size
        assert traffic.batches_in == 11

    asyncio.run(run())
