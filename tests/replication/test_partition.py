"""A partition over a log on a disk in memory, with the flusher that brokers use."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.storage.batches import NOW_MS, open_log, produced

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.partition import ACKS_ALL, FlushPolicy, Partition
from ottla.runtime.flusher import Flusher
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import Appended


class LeaderKit:
    """A led partition whose syncs can be waited for."""

    def __init__(self, policy: FlushPolicy, config: LogConfig | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.disk = FaultyFilesystem()
        self.executor = ThreadPoolExecutor(1)
        self.errors: list[BaseException] = []
        flusher = Flusher(loop, self.executor, lambda log, error: self.errors.append(error))
        self.partition = Partition(open_log(self.disk, config), policy, flusher)
        self.partition.become_leader(3, (1,))

    def append(self, *values: bytes) -> Appended:
        return self.partition.append(*produced(*values), NOW_MS)

    async def acknowledged(self, appended: Appended, acks: int) -> ApiError | None:
        outcome: asyncio.Future[ApiError | None] = asyncio.get_running_loop().create_future()
        self.partition.wait_for_acknowledgement(appended, acks, outcome.set_result)
        return await outcome


@pytest.mark.parametrize("acks", [1, ACKS_ALL])
def test_with_the_ack_policy_an_append_is_acknowledged_and_seen_after_its_sync(acks: int) -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.ACK)
        appended = kit.append(b"one", b"two")
        assert not kit.partition.acknowledged(appended, acks)
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
        assert kit.partition.acknowledged(appended, 1)
        assert kit.partition.acknowledged(appended, ACKS_ALL)
        assert kit.partition.log.flushed_offset == 0

    asyncio.run(run())


def test_flush_messages_of_one_is_a_sync_before_every_acknowledgement() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_messages=1))
        appended = kit.append(b"one")
        assert not kit.partition.acknowledged(appended, 1)
        assert await kit.acknowledged(appended, ACKS_ALL) is None
        assert kit.partition.log.flushed_offset == 1

    asyncio.run(run())


def test_after_so_many_messages_the_log_is_synced() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_messages=3))
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kit.partition.flushed_waiters.add(3, lambda error: synced.set_result(None))
        for value in (b"one", b"two", b"three"):
            assert kit.partition.log.flushed_offset == 0
            assert kit.partition.acknowledged(kit.append(value), ACKS_ALL)
        await synced
        assert kit.partition.log.flushed_offset == 3

    asyncio.run(run())


def test_after_so_long_the_log_is_synced() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS, LogConfig(flush_ms=1000))
        synced: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kit.partition.maybe_flush(now_ms=5_000)
        kit.append(b"one")
        kit.partition.flushed_waiters.add(1, lambda error: synced.set_result(None))
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
        kit.partition.wait_for_acknowledgement(kit.append(b"one"), ACKS_ALL, outcomes.append)
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
        kit = LeaderKit(FlushPolicy.OS, LogConfig(min_insync_replicas=2))
        with pytest.raises(ApiError) as refused:
            kit.partition.validate_in_sync_replicas()
        assert refused.value.code == ErrorCode.not_enough_replicas
        kit.partition.become_leader(3, (1, 2))
        kit.partition.validate_in_sync_replicas()

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


def test_readers_at_many_places_each_get_their_own_bytes() -> None:
    async def run() -> None:
        kit = LeaderKit(FlushPolicy.OS)
        for number in range(200):
            kit.append(b"%d" % number)
        places = dict.fromkeys(range(0, 200, 2))
        for _ in range(3):
            for offset in places:
                found = kit.partition.read(offset, 1, committed_only=False)
                assert found is not None
                assert found.next_offset == offset + 1

    asyncio.run(run())
