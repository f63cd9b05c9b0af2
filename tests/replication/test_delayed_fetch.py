"""Waiting fetches, on real partitions and the real event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from tests.replication.roles import leader_of
from tests.storage.batches import NOW_MS, open_log, produced

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import FetchedPartition, PartitionData
from ottla.replication.counters import ReplicaCounters
from ottla.replication.delayed_fetch import DelayedFetch, Fetched, FetchTerms
from ottla.replication.fetch_sessions import WantedPartition
from ottla.replication.partition import FlushPolicy, Partition
from ottla.storage.faulty_filesystem import FaultyFilesystem

FOREVER_MS = 100_000


class Fetcher:
    """One consumer of the topic `orders`, whose partitions are created on first use."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.partitions: dict[int, Partition] = {}

    def find(self, topic: str | UUID, index: int) -> Partition:
        if index not in self.partitions:
            raise ApiError(ErrorCode.unknown_topic_or_partition)
        return self.partitions[index]

    def add(self, index: int) -> Partition:
        partition = Partition(open_log(FaultyFilesystem()), FlushPolicy.OS, None)  # type: ignore[arg-type]
        partition.become_leader(0, (1,))
        self.partitions[index] = partition
        return partition

    def start(self, *indexes: int, **terms: Any) -> "asyncio.Future[list[PartitionData]]":
        answer: asyncio.Future[list[PartitionData]] = self.loop.create_future()

        def on_complete(fetched: list[Fetched]) -> None:
            answer.set_result([data for _, data in fetched])

        wanted = [
            WantedPartition("orders", FetchedPartition(index, -1, 0, -1, -1, 1 << 20))
            for index in indexes
        ]
        chosen = {"min_bytes": 1, "max_bytes": 1 << 20, "max_wait_ms": FOREVER_MS, **terms}
        wished = FetchTerms(committed_only=False, **chosen)
        DelayedFetch(self.find, wanted, wished, self.loop, on_complete, ReplicaCounters()).start()
        return answer


def append(partition: Partition, value: bytes = b"value") -> None:
    leader_of(partition).append(*produced(value), NOW_MS)


def run(test: Callable[[Fetcher], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Fetcher())

    asyncio.run(main())


def sizes(answer: list[PartitionData]) -> list[int]:
    return [0 if data.records is None else data.records.size for data in answer]


def test_what_is_there_is_answered_at_once() -> None:
    async def test(fetcher: Fetcher) -> None:
        append(fetcher.add(0))
        answer = fetcher.start(0)
        assert answer.done()
        assert sizes(answer.result()) == [fetcher.partitions[0].log.size]

    run(test)


def test_an_empty_partition_is_waited_for() -> None:
    async def test(fetcher: Fetcher) -> None:
        partition = fetcher.add(0)
        answer = fetcher.start(0)
        assert not answer.done()
        append(partition)
        assert sizes(await answer) == [partition.log.size]

    run(test)


def test_too_little_data_is_waited_for_until_there_is_enough() -> None:
    async def test(fetcher: Fetcher) -> None:
        first, second = fetcher.add(0), fetcher.add(1)
        answer = fetcher.start(0, 1, min_bytes=250)
        append(first, b"x" * 100)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not answer.done()
        append(second, b"x" * 100)
        assert all(sizes(await answer))

    run(test)


def test_time_up_answers_with_what_there_is() -> None:
    async def test(fetcher: Fetcher) -> None:
        append(fetcher.add(0))
        answer = await fetcher.start(0, min_bytes=1 << 20, max_wait_ms=1)
        assert sizes(answer) == [fetcher.partitions[0].log.size]

    run(test)


def test_a_partition_that_goes_away_ends_the_wait() -> None:
    async def test(fetcher: Fetcher) -> None:
        partition = fetcher.add(0)
        answer = fetcher.start(0)
        del fetcher.partitions[0]
        partition.resign(ApiError(ErrorCode.unknown_topic_or_partition))
        (data,) = await answer
        assert data.error_code == ErrorCode.unknown_topic_or_partition

    run(test)


def test_an_error_of_one_partition_is_not_waited_over() -> None:
    async def test(fetcher: Fetcher) -> None:
        fetcher.add(0)
        good, bad = await fetcher.start(0, 1)
        assert good.error_code == 0
        assert bad.error_code == ErrorCode.unknown_topic_or_partition

    run(test)


def test_the_answer_is_bounded_but_has_at_least_one_batch() -> None:
    async def test(fetcher: Fetcher) -> None:
        for index in range(3):
            append(fetcher.add(index), b"x" * 500)
        assert [bool(size) for size in sizes(await fetcher.start(0, 1, 2, max_bytes=100))] == [
            True,
            False,
            False,
        ]
        assert all(sizes(await fetcher.start(0, 1, 2)))

    run(test)


def test_places_that_are_not_in_memory_are_looked_up_in_a_thread() -> None:
    async def test(fetcher: Fetcher) -> None:
        disk = FaultyFilesystem()
        partition = Partition(open_log(disk), FlushPolicy.OS, None)  # type: ignore[arg-type]
        partition.become_leader(0, (1,))
        fetcher.partitions[0] = partition
        for _ in range(100):
            append(partition, b"x" * 200)
        disk.evict(f"{partition.log.directory}/00000000000000000000.log")
        (data,) = await fetcher.start(0, max_bytes=6000)
        assert data.records is not None
        assert 0 < data.records.size <= 6000

    run(test)


def test_a_cancelled_fetch_is_forgotten_and_never_answered() -> None:
    async def run() -> None:
        fetcher = Fetcher()
        partition = fetcher.add(0)
        answers: list[list[Fetched]] = []
        wanted = [WantedPartition("orders", FetchedPartition(0, -1, 0, -1, -1, 1 << 20))]
        terms = FetchTerms(1, 1 << 20, FOREVER_MS, committed_only=False)
        fetch = DelayedFetch(
            fetcher.find, wanted, terms, fetcher.loop, answers.append, ReplicaCounters()
        )
        fetch.start()
        assert not fetch.done
        fetch.cancel()
        records, header = produced(b"late")
        leader_of(partition).append(records, header, NOW_MS)
        await asyncio.sleep(0)
        assert answers == []
        assert not partition.fetch_waiters

    asyncio.run(run())
