"""Routes markers to the leaders of their partitions: written here, or sent to other brokers.

All markers for a broker that are decided in one turn of the loop go into one request, and those
that arrive while it is in flight into the next. The caller retries a marker that could not be
written, with the leader that the partition has by then.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, NamedTuple

from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import i8, i16, i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import NO_LEADER
from ottla.coordination.broker_queues import BrokerQueues
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WriteTxnMarkersRequest
    from kio.schema.write_txn_markers.v2.response import (
        WritableTxnMarkerResult,
        WriteTxnMarkersResponse,
    )

# Writes a marker to a partition led by this broker; returns when it is committed.
WriteHere = Callable[[TopicPartition, TransactionMarker, int], Awaitable[None]]
# Sends a request to a broker; ApiError if no response came.
AskBroker = Callable[[int, "WriteTxnMarkersRequest"], Awaitable["WriteTxnMarkersResponse"]]

_Codes = dict[TopicPartition, ErrorCode]


class _Content(NamedTuple):
    """The content that markers for any number of partitions share."""

    marker: TransactionMarker
    transaction_version: int


class _Waiting(NamedTuple):
    content: _Content
    topic_partition: TopicPartition
    written: "Future[None]"


class MarkerRoutes:
    def __init__(
        self,
        node_id: int,
        image: MetadataImage,
        write_here: WriteHere,
        ask: AskBroker,
        supervisor: Supervisor,
    ) -> None:
        self._node_id = node_id
        self._image = image
        self._write_here = write_here
        self._ask = ask
        self._loop = supervisor.loop
        self._queues = BrokerQueues("markers", self._send, supervisor)

    async def write(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> None:
        """Returns when the marker is committed; ApiError if it may not have been written."""
        state = self._image.partition(*topic_partition)
        leader = NO_LEADER if state is None else state.leader
        if leader == self._node_id:
            await self._write_here(topic_partition, marker, transaction_version)
        elif leader == NO_LEADER:
            raise ApiError(ErrorCode.leader_not_available, f"{topic_partition} has no leader now")
        else:
            written: Future[None] = self._loop.create_future()
            self._queues.add(
                leader, _Waiting(_Content(marker, transaction_version), topic_partition, written)
            )
            try:
                await written
            finally:
                del written  # It may hold an exception whose traceback references this frame.

    async def _send(self, leader: int, waiting: list[_Waiting]) -> None:
        topic_partitions: dict[_Content, dict[TopicPartition, None]] = {}
        for content, topic_partition, _ in waiting:
            topic_partitions.setdefault(content, {})[topic_partition] = None
        codes = await self._codes(leader, topic_partitions)
        for content, topic_partition, written in waiting:
            code = codes.get(content, _NOT_ANSWERED).get(
                topic_partition, ErrorCode.unknown_server_error
            )
            _settle(written, topic_partition, code)

    async def _codes(
        self, leader: int, topic_partitions: dict[_Content, dict[TopicPartition, None]]
    ) -> dict[_Content, _Codes]:
        from kio.schema.write_txn_markers.v2.request import WriteTxnMarkersRequest

        request = WriteTxnMarkersRequest(
            markers=tuple(_encode(content, asked) for content, asked in topic_partitions.items())
        )
        try:
            response = await self._ask(leader, request)
        except ApiError as error:
            return {
                content: dict.fromkeys(asked, error.code)
                for content, asked in topic_partitions.items()
            }
        return dict(zip(topic_partitions, map(_codes, response.markers), strict=False))


_NOT_ANSWERED: _Codes = {}


def _encode(content: _Content, topic_partitions: Collection[TopicPartition]) -> "WritableTxnMarker":
    from kio.schema.write_txn_markers.v2.request import WritableTxnMarker, WritableTxnMarkerTopic

    marker, transaction_version = content
    topics: dict[str, list[i32]] = {}
    for topic_partition in topic_partitions:
        topics.setdefault(topic_partition.topic, []).append(i32(topic_partition.partition))
    return WritableTxnMarker(
        producer_id=ProducerId(marker.producer_id),
        producer_epoch=i16(marker.producer_epoch),
        transaction_result=marker.committed,
        topics=tuple(
            WritableTxnMarkerTopic(name=TopicName(name), partition_indexes=tuple(partitions))
            for name, partitions in topics.items()
        ),
        coordinator_epoch=i32(marker.coordinator_epoch),
        transaction_version=i8(transaction_version),
    )


def _codes(result: "WritableTxnMarkerResult") -> _Codes:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in result.topics
        for partition in topic.partitions
    }


def _settle(written: "Future[None]", topic_partition: TopicPartition, code: ErrorCode) -> None:
    if written.done():
        return  # The waiter has gone.
    if code is ErrorCode.none:
        written.set_result(None)
    else:
        written.set_exception(ApiError(code, f"the marker for {topic_partition} was not written"))
