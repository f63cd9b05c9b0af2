"""Tails over a real broker."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from confluent_kafka import Producer
from tests.client.topics import create_topic, delete_topic

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import Cluster as BlockingCluster
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.gateway.core.filters import EVERYTHING, Filter
from ottla.gateway.core.partition_source import PartitionSource
from ottla.gateway.core.starts import Start, positions_at
from ottla.gateway.core.tails import Follower, Item, Tails
from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.clients

PATIENCE_S = 240


@pytest.fixture
def blocking(bootstrap: str) -> Iterator[BlockingCluster]:
    with BlockingCluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        yield cluster


def run(bootstrap: str, scenario: Callable[[Tails], Awaitable[None]]) -> None:
    async def body() -> None:
        async with Cluster(bootstrap) as cluster, asyncio.timeout(PATIENCE_S):
            tails = Tails(PartitionSource(cluster))
            try:
                await scenario(tails)
            finally:
                await tails.close()

    asyncio.run(body())


def produce(bootstrap: str, topic: str, partition: int, *values: str, **config: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, **config})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE_S) == 0


async def values(follower: Follower, count: int) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        for item in await follower.read(PATIENCE_S):
            assert isinstance(item, Item)
            assert item.record.value is not None
            found.append(item.record.value.decode())
    return found


def test_the_past_and_what_comes_is_read_once(bootstrap: str, blocking: BlockingCluster) -> None:
    topic = create_topic(blocking, partitions=2)
    produce(bootstrap, topic, 0, *map(str, range(500)), **{"compression.type": "zstd"})

    async def scenario(tails: Tails) -> None:
        start = await positions_at(tails.source, topic, Start(EARLIEST), EVERYTHING)
        follower = await tails.follow(topic, start)
        assert await values(follower, 500) == list(map(str, range(500)))
        await asyncio.to_thread(produce, bootstrap, topic, 1, "a", "b")
        await asyncio.to_thread(produce, bootstrap, topic, 0, "500")
        assert sorted(await values(follower, 3)) == ["500", "a", "b"]
        assert follower.positions == {0: 501, 1: 2}

    run(bootstrap, scenario)


def test_an_open_or_aborted_transaction_is_not_shown(
    bootstrap: str, blocking: BlockingCluster
) -> None:
    topic = create_topic(blocking)

    def write(transaction: str, *, commit: bool) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce(topic, transaction)
        if commit:
            producer.commit_transaction(PATIENCE_S)
        else:
            assert producer.flush(PATIENCE_S) == 0
            producer.abort_transaction(PATIENCE_S)

    async def scenario(tails: Tails) -> None:
        follower = await tails.follow(topic, {0: 0})
        await asyncio.to_thread(write, "aborted", commit=False)
        await asyncio.to_thread(write, "committed", commit=True)
        assert await values(follower, 1) == ["committed"]
        late = await tails.follow(topic, {0: 0})
        assert await values(late, 1) == ["committed"]

    run(bootstrap, scenario)


def test_where_readers_begin(bootstrap: str, blocking: BlockingCluster) -> None:
    topic = create_topic(blocking, partitions=3)
    produce(bootstrap, topic, 0, "a", "b")
    filter_ = Filter(partitions=frozenset({0}))

    async def scenario(tails: Tails) -> None:
        async def at(start: Start, wanted: Filter = EVERYTHING) -> dict[int, int]:
            return await positions_at(tails.source, topic, start, wanted)

        assert await at(Start(LATEST)) == {0: 2, 1: 0, 2: 0}
        assert await at(Start(EARLIEST)) == {0: 0, 1: 0, 2: 0}
        assert await at(Start(1 << 50)) == {0: 2, 1: 0, 2: 0}
        assert await at(Start(0), filter_) == {0: 0}
        assert await at(Start(offset=1), filter_) == {0: 1}
        assert await at(Start(EARLIEST, offsets={1: 7})) == {0: 0, 1: 7, 2: 0}
        with pytest.raises(ValueError, match="3 partitions"):
            await at(Start(offset=1))
        with pytest.raises(BrokerError) as raised:
            await at(Start(), Filter(partitions=frozenset({3})))
        assert raised.value.code is ErrorCode.unknown_topic_or_partition
        with pytest.raises(BrokerError) as raised:
            await positions_at(tails.source, "__gateway_x", Start(), EVERYTHING)
        assert raised.value.code is ErrorCode.topic_authorization_failed
        found = await tails.source.offsets({TopicPartition(topic, 0): LATEST})
        assert found == {TopicPartition(topic, 0): 2}

    run(bootstrap, scenario)


def test_readers_of_a_topic_that_is_deleted_are_told(
    bootstrap: str, blocking: BlockingCluster
) -> None:
    topic = create_topic(blocking)

    async def scenario(tails: Tails) -> None:
        follower = await tails.follow(topic, {0: 0})
        assert await follower.read(0.5) == []
        await asyncio.to_thread(delete_topic, blocking, topic)
        with pytest.raises(BrokerError) as raised:
            await follower.read(PATIENCE_S)
        assert raised.value.code is ErrorCode.unknown_topic_or_partition

    run(bootstrap, scenario)
