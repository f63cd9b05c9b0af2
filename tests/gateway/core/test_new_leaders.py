"""Reads to an end that the leader's successor does not know yet."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.client.topics import create_topic

from ottla.client.async_wire import reading
from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.producing import produce
from ottla.client.wire.cluster import Cluster as BlockingCluster
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.fetching import Fetched, fetched
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.dead_letters import DeadLetters
from ottla.gateway.core.groups import Groups
from ottla.records.builder import Record, build_batch

pytestmark = pytest.mark.clients

PATIENCE_S = 240


@pytest.fixture
def topic(bootstrap: str) -> str:
    with BlockingCluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        return create_topic(cluster)


def run(bootstrap: str, scenario: Callable[[Cluster], Awaitable[None]]) -> None:
    async def body() -> None:
        async with Cluster(bootstrap) as cluster, asyncio.timeout(PATIENCE_S):
            await scenario(cluster)

    asyncio.run(body())


def answer_with_nothing(
    monkeypatch: pytest.MonkeyPatch, *, count: int, high_watermark: Callable[[int], int]
) -> None:
    """The next fetches find no records; `high_watermark` gets the offset."""
    left = [None] * count

    def answer(response: object, topic_partition: TopicPartition, offset: int) -> Fetched:
        if not left:
            return fetched(response, topic_partition, offset)
        left.pop()
        known = high_watermark(offset)
        return Fetched(memoryview(b""), (), known, known, 0)

    monkeypatch.setattr(reading, "fetched", answer)


def test_a_table_waits_for_a_new_leader(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster) -> None:
        await CompactedTable(cluster, topic).put("a", b"1")
        other = CompactedTable(cluster, topic)
        answer_with_nothing(monkeypatch, count=2, high_watermark=lambda offset: offset)

        await other.refresh()

        assert other.get("a") == b"1"

    run(bootstrap, scenario)


def test_a_table_does_not_wait_for_what_compaction_has_removed(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster) -> None:
        table = CompactedTable(cluster, topic)
        await table.put("a", b"1")
        await CompactedTable(cluster, topic).put("a", None)
        answer_with_nothing(monkeypatch, count=1, high_watermark=lambda offset: offset + 1)

        await table.refresh()
        await table.put("b", b"2")

        assert dict(table.items()) == {"a": b"1", "b": b"2"}

    run(bootstrap, scenario)


def test_dead_letters_wait_for_a_new_leader(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(cluster: Cluster) -> None:
        record = Record(timestamp=0, value=b"dead")
        await produce(cluster, {TopicPartition(topic, 0): build_batch([record])})
        letters = DeadLetters(cluster, Administration(cluster), Groups(cluster))
        answer_with_nothing(monkeypatch, count=1, high_watermark=lambda offset: offset)

        (found,) = await letters.look(topic)

        assert found.record.value == b"dead"

    run(bootstrap, scenario)
