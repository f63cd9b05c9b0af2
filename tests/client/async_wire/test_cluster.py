import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable

import pytest
from tests.client.async_wire.metadata import METADATA

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.reading import fetch, list_offsets
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.wire.cluster import Cluster as BlockingCluster
from ottla.client.wire.cluster import CoordinatorType, TopicPartition
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, Unreachable
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.client.wire.producing import produce
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records

_numbers = itertools.count()


def on_cluster(bootstrap: str, test: Callable[[Cluster, str], Awaitable[None]]) -> None:
    """Run the test with a new topic of two partitions."""

    async def run() -> None:
        async with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
            name = f"async-wire-{os.getpid()}-{next(_numbers)}"
            await ensure_topic(cluster, name, partitions=2)
            await list_offsets(cluster, {TopicPartition(name, 1): LATEST})  # It has a leader.
            await test(cluster, name)

    asyncio.run(run())


def test_topics_leaders_and_coordinators(bootstrap: str) -> None:
    async def asks(cluster: Cluster, name: str) -> None:
        topic = await cluster.topic(name)
        assert sorted(topic.leaders) == [0, 1]
        assert (await cluster.topics())[name] == topic
        await ensure_topic(cluster, name, partitions=7)
        assert await cluster.topics([name, "not-there"]) == {name: topic}
        leader = await cluster.leader(TopicPartition(name, 1))
        assert leader is await cluster.node(topic.leaders[1])
        own = await cluster.own_connection_to_leader(TopicPartition(name, 1))
        assert own is not leader
        own.close()
        assert not leader.closed

        async def coordinator() -> None:
            connection = await cluster.coordinator(CoordinatorType.GROUP, "g")
            assert (await connection.call(METADATA)).brokers

        await cluster.retry(coordinator)
        assert leader in (await cluster.every_broker()).values()

    on_cluster(bootstrap, asks)


def test_what_is_not_there(bootstrap: str) -> None:
    async def asks(cluster: Cluster, name: str) -> None:
        for topic_partition in (TopicPartition("not-there", 0), TopicPartition(name, 7)):
            with pytest.raises(BrokerError) as raised:
                await cluster.leader(topic_partition)
            assert raised.value.code is ErrorCode.unknown_topic_or_partition

    on_cluster(bootstrap, asks)


def test_callers_at_once_share_a_connection_and_one_that_broke_is_replaced(bootstrap: str) -> None:
    async def asks(cluster: Cluster, name: str) -> None:
        topic_partition = TopicPartition(name, 0)
        (connection,) = set(
            await asyncio.gather(*(cluster.leader(topic_partition) for _ in range(50)))
        )
        connection.close()
        (other,) = set(await asyncio.gather(*(cluster.leader(topic_partition) for _ in range(50))))
        assert other is not connection
        assert (await other.call(METADATA)).brokers

    on_cluster(bootstrap, asks)


def test_what_passes_is_tried_again_and_what_does_not_is_raised(bootstrap: str) -> None:
    answers: list[Exception | str] = [
        BrokerError(ErrorCode.not_leader_or_follower, "a"),
        Unreachable("b"),
        "c",
        BrokerError(ErrorCode.invalid_request, "d"),
    ]

    async def operation() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tries(cluster: Cluster, name: str) -> None:
        assert await cluster.retry(operation) == "c"
        with pytest.raises(BrokerError, match="d"):
            await cluster.retry(operation)

    on_cluster(bootstrap, tries)


def test_no_server_that_answers_is_said_with_every_reason() -> None:
    async def run() -> None:
        async with Cluster("127.0.0.1:1,127.0.0.1:2", retry_timeout_ms=1) as cluster:
            with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1.*127\.0\.0\.1:2"):
                await cluster.topics()

    asyncio.run(run())


def test_offsets_and_batches_of_a_partition(bootstrap: str) -> None:
    async def reads(cluster: Cluster, name: str) -> None:
        topic_partition = TopicPartition(name, 0)
        batch = build_batch([Record(value=b"a", timestamp=5), Record(value=b"b", timestamp=9)])
        with BlockingCluster(bootstrap) as blocking:
            await asyncio.to_thread(produce, blocking, {topic_partition: batch})
        assert await list_offsets(cluster, {topic_partition: EARLIEST}) == {topic_partition: 0}
        assert await list_offsets(cluster, {topic_partition: LATEST}) == {topic_partition: 2}
        assert await list_offsets(cluster, {topic_partition: 6}) == {topic_partition: 1}
        assert await list_offsets(cluster, {topic_partition: 99}) == {topic_partition: None}
        connection = await cluster.own_connection_to_leader(topic_partition)
        found = await fetch(cluster, connection, topic_partition, 0)
        assert [record.value for record in iterate_records(found.records, 0)] == [b"a", b"b"]
        assert not (await fetch(cluster, connection, topic_partition, 2, wait_ms=1)).records
        with pytest.raises(OffsetOutOfRange):
            await fetch(cluster, connection, topic_partition, 3)
        connection.close()

    on_cluster(bootstrap, reads)
