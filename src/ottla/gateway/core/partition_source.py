"""Committed records of partitions, many partitions per request.

Waiting fetches have their own connection to each broker, because a broker answers the requests on a
connection in order.
"""

from collections.abc import Mapping
from typing import Any

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.async_wire.reading import list_offsets
from ottla.client.wire.cluster import Topic, TopicPartition, by_topic
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, Unreachable, validate_answer
from ottla.client.wire.fetching import aborted_in, fetch_request
from ottla.client.wire.offsets import LATEST, Isolation
from ottla.gateway.core.tails import Stretch
from ottla.protocol.errors import ErrorCode
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError
from ottla.records.isolation import scan_batches

PARTITION_BYTES_MAX = 1 << 20
BYTES_MAX = 8 << 20

_NETWORK_S = 30.0  # On top of the fetch's own wait.


class PartitionSource:
    """Implements `tails.Source` with a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._waiting: dict[int, Connection] = {}  # By node id.

    async def leaders(self, topic: str, *, fresh: bool) -> Mapping[int, int]:
        if fresh:
            found = await self._cluster.topics([topic])
            if topic not in found:
                raise BrokerError(ErrorCode.unknown_topic_or_partition, f"topic {topic}")
            return found[topic].leaders
        return (await self._cluster.topic(topic)).leaders

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = await list_offsets(self._cluster, times, Isolation.READ_COMMITTED)
        late = [topic_partition for topic_partition, offset in found.items() if offset is None]
        ends = await self.offsets(dict.fromkeys(late, LATEST)) if late else {}
        return {
            topic_partition: ends[topic_partition] if at is None else at
            for topic_partition, at in found.items()
        }

    async def fetch(
        self, node_id: int, positions: Mapping[TopicPartition, int], *, wait_ms: int
    ) -> dict[TopicPartition, Stretch | BrokerError]:
        topics = {name: await self._cluster.topic(name) for name in by_topic(positions)}
        if wait_ms:
            connection = await self._waiting_connection(node_id)
        else:
            connection = await self._cluster.node(node_id)
        request = fetch_request(
            positions,
            topics,
            Isolation.READ_COMMITTED,
            bytes_max=BYTES_MAX,
            partition_bytes_max=PARTITION_BYTES_MAX,
            wait_ms=wait_ms,
        )
        response = await connection.call(request, timeout_s=wait_ms / 1000 + _NETWORK_S)
        validate_answer(response.error_code, f"fetch from node {node_id}")
        return _answers(response, positions, topics)

    def leave(self, node_id: int) -> None:
        connection = self._waiting.pop(node_id, None)
        if connection is not None:
            connection.close()

    async def _waiting_connection(self, node_id: int) -> Connection:
        connection = self._waiting.get(node_id)
        if connection is None or connection.closed:
            connection = self._waiting[node_id] = await self._cluster.own_connection(node_id)
        return connection


def _answers(
    response: Any, positions: Mapping[TopicPartition, int], topics: Mapping[str, Topic]
) -> dict[TopicPartition, Stretch | BrokerError]:
    names = {topic.id: name for name, topic in topics.items()}
    found: dict[TopicPartition, Stretch | BrokerError] = {}
    for topic in response.responses:
        for answer in topic.partitions:
            name = topic.topic or names.get(topic.topic_id, "")
            topic_partition = TopicPartition(name, answer.partition_index)
            if topic_partition in positions:
                found[topic_partition] = _stretch(
                    topic_partition, positions[topic_partition], answer
                )
    if found.keys() != positions.keys():
        raise Unreachable("an answer to a fetch that leaves partitions out")
    return found


def _stretch(topic_partition: TopicPartition, offset: int, answer: Any) -> Stretch | BrokerError:
    what = f"fetch of {topic_partition} at offset {offset}"
    if answer.error_code is ErrorCode.offset_out_of_range:
        return OffsetOutOfRange(what)
    if answer.error_code is not ErrorCode.none:
        return BrokerError(answer.error_code, what)
    if not answer.records:
        return Stretch((), offset)
    end_offset, aborted = answer.last_stable_offset, aborted_in(answer)
    try:
        scan = scan_batches(answer.records, offset, end_offset, aborted)
        records: list[Record] = []
        for batch in scan.batches:
            records += iterate_records(answer.records, batch.position, from_offset=offset)
    except RecordError as error:
        return BrokerError(ErrorCode.corrupt_message, f"{what}: {error}")
    return Stretch(records, scan.next_offset)
