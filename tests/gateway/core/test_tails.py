"""Readers of the ends of partitions, over a source in memory."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import pytest

from ottla.client.wire.cluster import NO_LEADER, TopicPartition
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, Unreachable
from ottla.client.wire.offsets import EARLIEST
from ottla.gateway.core.filters import EVERYTHING, Filter
from ottla.gateway.core.tails import Closed, Follower, Gap, Item, Stretch, Tails
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record

PATIENCE_S = 120
TOPIC = "orders"


class Log:
    def __init__(self) -> None:
        self.start = 0
        self.records: list[Record] = []

    @property
    def end(self) -> int:
        return self.records[-1].offset + 1 if self.records else self.start


class MemorySource:
    """Partitions that grow on command; a fetch without records waits for them."""

    def __init__(self, partitions_count: int = 1) -> None:
        self.logs = {TopicPartition(TOPIC, p): Log() for p in range(partitions_count)}
        self.leader = dict.fromkeys(self.logs, 0)
        self.down: set[int] = set()
        self.waiting_fetches_count = 0
        self.stretch_count_max = 1_000
        self._grown = asyncio.Event()

    def append(self, partition: int, *values: bytes, key: bytes | None = None) -> None:
        log = self.logs[TopicPartition(TOPIC, partition)]
        for value in values:
            log.records.append(Record(log.end, 0, key, value))
        self.tell()

    def tell(self) -> None:
        self._grown.set()
        self._grown = asyncio.Event()

    async def leaders(self, topic: str, *, fresh: bool) -> Mapping[int, int]:
        found = {topic_partition.partition: node for topic_partition, node in self.leader.items()}
        if not found:
            raise BrokerError(ErrorCode.unknown_topic_or_partition, f"topic {topic}")
        return found

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        logs = {topic_partition: self.logs[topic_partition] for topic_partition in times}
        return {p: log.start if times[p] == EARLIEST else log.end for p, log in logs.items()}

    async def fetch(
        self, node_id: int, positions: Mapping[TopicPartition, int], *, wait_ms: int
    ) -> dict[TopicPartition, Stretch | BrokerError]:
        assert node_id != NO_LEADER
        self.waiting_fetches_count += wait_ms > 0
        await asyncio.sleep(0)
        if node_id in self.down:
            raise Unreachable(f"node {node_id}")
        answers = {
            topic_partition: self._read(node_id, topic_partition, at)
            for topic_partition, at in positions.items()
        }
        if wait_ms and not any(isinstance(a, BrokerError) or a.records for a in answers.values()):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._grown.wait(), wait_ms / 1000)
            answers = {
                topic_partition: self._read(node_id, topic_partition, at)
                for topic_partition, at in positions.items()
            }
        return answers

    def _read(
        self, node_id: int, topic_partition: TopicPartition, offset: int
    ) -> Stretch | BrokerError:
        if self.leader.get(topic_partition) != node_id:
            return BrokerError(ErrorCode.not_leader_or_follower, str(topic_partition))
        log = self.logs[topic_partition]
        if not log.start <= offset <= log.end:
            return OffsetOutOfRange(str(topic_partition))
        records = [r for r in log.records if r.offset >= offset][: self.stretch_count_max]
        return Stretch(records, records[-1].offset + 1 if records else offset)

    def leave(self, node_id: int) -> None:
        pass


async def values(follower: Follower, count: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while len(found) < count:
        for item in await follower.read(PATIENCE_S):
            assert isinstance(item, Item)
            found.append(item.record.value)
    return found


def run(scenario: Callable[[MemorySource, Tails], Awaitable[None]], **tails_options: int) -> None:
    async def body() -> None:
        source = MemorySource(2)
        tails = Tails(source, **tails_options)
        try:
            async with asyncio.timeout(PATIENCE_S):
                await scenario(source, tails)
        finally:
            await tails.close()

    asyncio.run(body())


def test_all_readers_get_the_same_decoded_records_of_one_fetch() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        followers = [await tails.follow(TOPIC, {0: 0}) for _ in range(50)]
        source.append(0, b"a", b"b")
        reads = [await follower.read(PATIENCE_S) for follower in followers]
        assert [item.record.value for item in reads[0] if isinstance(item, Item)] == [b"a", b"b"]
        assert all(a is b for other in reads for a, b in zip(other, reads[0], strict=True))
        assert source.waiting_fetches_count <= 3
        assert tails.own_reads_count == 0

    run(scenario)


def test_a_reader_that_begins_in_the_past_catches_up_by_itself_and_then_shares() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        source.stretch_count_max = 3
        source.append(0, *(b"%d" % n for n in range(10)))
        follower = await tails.follow(TOPIC, {0: 2})
        assert await values(follower, 8) == [b"%d" % n for n in range(2, 10)]
        own_reads_count = tails.own_reads_count
        assert own_reads_count >= 3
        source.append(0, b"10")
        assert await values(follower, 1) == [b"10"]
        assert tails.own_reads_count == own_reads_count

    run(scenario)


def test_a_slow_reader_loses_nothing_and_delays_nobody() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        quick = await tails.follow(TOPIC, {0: 0})
        slow = await tails.follow(TOPIC, {0: 0})
        for n in range(100):
            source.append(0, b"%d" % n)
            assert await values(quick, 1) == [b"%d" % n]
        assert tails.own_reads_count == 0
        assert tails.tail(TOPIC, 0).start > 0
        assert await values(slow, 100) == [b"%d" % n for n in range(100)]
        assert tails.own_reads_count > 0

    run(scenario, tail_bytes_max=2_000)


def test_a_filter_passes_over_what_it_leaves_out() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0, 1: 0}, Filter(keys=frozenset({b"x"})))
        source.append(0, b"no", key=b"y")
        source.append(1, b"yes", key=b"x")
        source.append(0, b"neither")
        assert await values(follower, 1) == [b"yes"]
        while follower.positions != {0: 2, 1: 1}:
            await follower.read(0)
            await asyncio.sleep(0)

    run(scenario)


def test_nothing_to_read_is_nothing_when_the_time_has_passed() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        assert await follower.read(0.01) == []

    run(scenario)


def test_a_new_leader_is_followed_without_loss_or_doubles() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        source.append(0, b"a")
        assert await values(follower, 1) == [b"a"]
        source.leader[TopicPartition(TOPIC, 0)] = 7
        source.append(0, b"b")
        assert await values(follower, 1) == [b"b"]

    run(scenario)


def test_a_node_that_is_away_for_a_while_is_waited_for() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        source.append(0, b"a")
        source.down.add(0)
        follower = await tails.follow(TOPIC, {0: 0})
        assert await follower.read(0.2) == []
        source.down.clear()
        source.append(0, b"b")
        assert await values(follower, 2) == [b"a", b"b"]

    run(scenario)


def test_records_that_are_gone_show_as_a_gap() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        source.append(0, *(b"%d" % n for n in range(10)))
        log = source.logs[TopicPartition(TOPIC, 0)]
        log.start, log.records = 6, log.records[6:]
        follower = await tails.follow(TOPIC, {0: 2})
        assert await follower.read(PATIENCE_S) == [Gap(0, 2, 6)]
        assert await values(follower, 4) == [b"6", b"7", b"8", b"9"]

    run(scenario)


def test_a_cleared_partition_goes_on_at_its_new_start() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        log = source.logs[TopicPartition(TOPIC, 0)]
        log.start = 40
        source.append(0, b"x")
        assert await follower.read(PATIENCE_S) == [Gap(0, 0, 40)]
        assert await values(follower, 1) == [b"x"]

    run(scenario)


def test_readers_of_a_deleted_topic_are_told() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        source.leader.clear()
        source.tell()
        with pytest.raises(BrokerError) as raised:
            await follower.read(PATIENCE_S)
        assert raised.value.code is ErrorCode.unknown_topic_or_partition

    run(scenario)


def test_readers_end_when_the_gateway_stops() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        reading = asyncio.ensure_future(follower.read(PATIENCE_S))
        await asyncio.sleep(0)
        tails.end_readers()
        with pytest.raises(Closed):
            await reading

    run(scenario)


def test_partitions_that_a_topic_gets_later_are_read_from_their_beginning() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        growing = await tails.follow(TOPIC, {0: 0, 1: 0}, grows=True)
        fixed = await tails.follow(TOPIC, {0: 0}, EVERYTHING)
        topic_partition = TopicPartition(TOPIC, 2)
        source.logs[topic_partition] = Log()
        source.leader[topic_partition] = 0
        source.append(2, b"new")
        await tails.look_for_partitions()
        assert await values(growing, 1) == [b"new"]
        assert fixed.positions == {0: 0}

    run(scenario)


def test_a_partition_that_nobody_follows_is_fetched_no_more() -> None:
    async def scenario(source: MemorySource, tails: Tails) -> None:
        follower = await tails.follow(TOPIC, {0: 0})
        source.append(0, b"a")
        await values(follower, 1)
        follower.close()
        while tails._fetches:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert not tails._tails

    run(scenario)
