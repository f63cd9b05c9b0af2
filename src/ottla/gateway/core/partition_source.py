"""Committed records of partitions, many partitions per request.

Waiting fetches have their own connection to each broker, because a broker answers the requests on a
connection in order.
"""

from collections.abc import Mapping
from typing import Any

from kio.schema.fetch.v18.request import FetchPartition
from kio.static.primitive import i8, i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.async_wire.reading import list_offsets
from ottla.client.wire.cluster import Topic, TopicPartition, by_topic
from ottla.client.wire.errors import BrokerError, OffsetOutOfRange, Unreachable, validate_answer
from ottla.client.wire.offsets import LATEST, Isolation
from ottla.gateway.core.tails import Stretch
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchRequest, FetchTopic
from ottla.protocol.times import milliseconds
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.errors import RecordError
from ottla.records.isolation import AbortedTransaction, scan_batches

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
        request = _request(positions, topics, wait_ms)
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


def _request(
    positions: Mapping[TopicPartition, int], topics: Mapping[str, Topic], wait_ms: int
) -> FetchRequest:
    wanted = tuple(
        FetchTopic(
            topic=name,
            topic_id=topics[name].id,
            partitions=tuple(
                FetchPartition(
                    partition=i32(partition),
                    fetch_offset=i64(positions[TopicPartition(name, partition)]),
                    partition_max_bytes=i32(PARTITION_BYTES_MAX),
                )
                for partition in partitions
            ),
        )
        for name, partitions in by_topic(positions).items()
    )
    return FetchRequest(
        max_wait=milliseconds(wait_ms),
        min_bytes=i32(1),
        max_bytes=i32(BYTES_MAX),
        isolation_level=i8(Isolation.READ_COMMITTED),
        topics=wanted,
        forgotten_topics_data=(),
    )


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
    aborted = [
        AbortedTransaction(item.producer_id, item.first_offset)
        for item in answer.aborted_transactions or ()
    ]
    try:
        scan = scan_batches(answer.records, offset, answer.last_stable_offset, aborted)
        records: list[Record] = []
        for batch in scan.batches:
            records += [
                record
                for record in iterate_records(answer.records, batch.position)
                if record.offset >= offset
            ]
    except RecordError as error:
        return BrokerError(ErrorCode.corrupt_message, f"{what}: {error}")
    return Stretch(records, scan.next_offset)
