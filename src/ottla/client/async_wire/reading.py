"""Offsets and record batches of partitions, one call each."""

from collections.abc import Mapping

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.fetching import BYTES_MAX, Fetched, fetch_request, fetched
from ottla.client.wire.offsets import Isolation, listed_offsets, offsets_request
from ottla.protocol.errors import ErrorCode

_NETWORK_S = 30.0  # On top of the fetch's own wait.


async def list_offsets(
    cluster: Cluster,
    times: Mapping[TopicPartition, int],
    isolation: Isolation = Isolation.READ_UNCOMMITTED,
) -> dict[TopicPartition, int | None]:
    """The first offset at or after each time in milliseconds; None if no record is that late.

    LATEST and EARLIEST stand for the ends. Raises for a partition that does not exist.
    """
    return await cluster.ask_leaders(
        times, lambda asked: offsets_request(asked, isolation), listed_offsets
    )


async def fetch(
    cluster: Cluster,
    connection: Connection,
    topic_partition: TopicPartition,
    offset: int,
    isolation: Isolation = Isolation.READ_COMMITTED,
    *,
    bytes_max: int = BYTES_MAX,
    wait_ms: int = 0,
) -> Fetched:
    """Batches starting with the one that contains the offset; empty if no record arrives in time.

    One attempt, over a connection to the leader; if it waits, over one of its own.
    """
    topics = {topic_partition.topic: await cluster.topic(topic_partition.topic)}
    request = fetch_request(
        {topic_partition: offset}, topics, isolation, bytes_max=bytes_max, wait_ms=wait_ms
    )
    response = await connection.call(request, timeout_s=wait_ms / 1000 + _NETWORK_S)
    return fetched(response, topic_partition, offset)


async def fetch_committed(
    cluster: Cluster, topic_partition: TopicPartition, offset: int, *, bytes_max: int = BYTES_MAX
) -> Fetched:
    """Batches from a leader that said before that there is more than up to the offset.

    A new leader learns only after a while what is committed, so this retries while the offset is
    not below its high watermark. Empty if compaction has removed everything from the offset on.
    """

    async def attempt() -> Fetched:
        leader = await cluster.leader(topic_partition)
        found = await fetch(
            cluster,
            leader,
            topic_partition,
            offset,
            Isolation.READ_UNCOMMITTED,
            bytes_max=bytes_max,
        )
        if found.high_watermark <= offset:
            raise BrokerError(
                ErrorCode.offset_not_available, f"offset {offset} of {topic_partition}"
            )
        return found

    return await cluster.retry(attempt)
