"""One share session: what one member fetches from one broker, over a connection of its own.

A fetch that waits keeps back the answers to whatever follows on its connection, so nothing else
uses it. Requests of a session are counted, so they go one after the other.
"""

import asyncio
import enum
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from uuid import UUID

from kio.schema.share_acknowledge.v2.request import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kio.schema.share_fetch.v2.request import FetchPartition, FetchTopic, ForgottenTopic
from kio.schema.types import GroupId
from kio.static.primitive import i8, i32, i64

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.share_wire.acquired import Acquired, Gap, acquired_records
from ottla.client.wire.errors import BrokerError, WireError, validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.share_fetch import ShareFetchRequest
from ottla.protocol.times import in_milliseconds, milliseconds

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EPOCH_MAX: Final = 2**31 - 1
RECORD_LIMIT: Final = i8(1)  # Acquire mode of KIP-1206: never more than was asked for.
FETCH_BYTES_MAX: Final = 8 << 20
ANSWER_TIMEOUT_S: Final = 30.0  # Beyond the time that a fetch waits.
INTERRUPT_TIMEOUT_S: Final = 3.0

logger = logging.getLogger(__name__)


class SessionKey(NamedTuple):
    topic: str
    topic_id: UUID
    group: str
    member_id: str


class AcknowledgeType(enum.IntEnum):
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Acknowledgement(NamedTuple):
    partition: int
    offset: int
    type: AcknowledgeType


class FetchTerms(NamedTuple):
    records_max: int
    max_wait_ms: int
    lock_ms: int  # What consumers want.
    holds: bool  # The broker is to hold the locks for so long, whoever goes.


@dataclass(slots=True)
class FetchedShares:
    acquired: list[Acquired] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    errors: dict[int, ErrorCode] = field(default_factory=dict)  # By partition.
    lock_ms: int = 0  # What the group is configured to.


class ShareSession:
    def __init__(self, cluster: Cluster, key: SessionKey, node_id: int) -> None:
        self.node_id = node_id
        self.generation = 0  # Counts sessions; locks of an earlier one were released.
        self._cluster = cluster
        self.key = key
        self._connection: Connection | None = None
        self._epoch = INITIAL_EPOCH
        self._named: set[int] = set()  # Partitions that the broker knows of.
        self._turn = asyncio.Lock()
        self._is_ended = False  # Interrupted; it is not used again.

    async def fetch(self, partitions: Iterable[int], terms: FetchTerms) -> FetchedShares:
        """WireError if the session, and with it every lock that is not held, is lost."""
        async with self._turn:
            wanted = set(partitions)
            request = self._fetch_request(wanted, terms)
            self._named = wanted
            response = await self._call(request, terms.max_wait_ms / 1000 + ANSWER_TIMEOUT_S)
        return self._fetched(response)

    def _fetch_request(self, wanted: set[int], terms: FetchTerms) -> ShareFetchRequest:
        return ShareFetchRequest(
            group_id=GroupId(self.key.group),
            member_id=self.key.member_id,
            share_session_epoch=i32(self._epoch),
            max_wait=milliseconds(terms.max_wait_ms),
            min_bytes=i32(1),
            max_bytes=i32(FETCH_BYTES_MAX),
            max_records=i32(terms.records_max),
            batch_size=i32(terms.records_max),
            share_acquire_mode=RECORD_LIMIT,
            topics=self._added(wanted - self._named),
            forgotten_topics_data=self._forgotten(self._named - wanted),
            hold_ms=i32(terms.lock_ms if terms.holds else 0),
        )

    async def acknowledge(
        self, acknowledgements: Sequence[Acknowledgement]
    ) -> dict[int, ErrorCode]:
        """What was refused, by partition; of such a partition nothing was done."""
        async with self._turn:
            request = self._acknowledge_request(acknowledgements, self._epoch)
            response = await self._call(request, ANSWER_TIMEOUT_S)
        return {
            partition.partition_index: partition.error_code
            for topic in response.responses
            for partition in topic.partitions
            if partition.error_code is not ErrorCode.none
        }

    def _acknowledge_request(
        self, acknowledgements: Sequence[Acknowledgement], epoch: int
    ) -> ShareAcknowledgeRequest:
        named: dict[int, list[AcknowledgementBatch]] = {}  # Brokers want them in ascending order.
        for partition, offset, kind in sorted(acknowledgements):
            at = i64(offset)
            batch = AcknowledgementBatch(
                first_offset=at, last_offset=at, acknowledge_types=(i8(kind),)
            )
            named.setdefault(partition, []).append(batch)
        return ShareAcknowledgeRequest(
            group_id=GroupId(self.key.group),
            member_id=self.key.member_id,
            share_session_epoch=i32(epoch),
            is_renew_ack=any(each.type is AcknowledgeType.RENEW for each in acknowledgements),
            topics=(
                AcknowledgeTopic(
                    topic_id=self.key.topic_id,
                    partitions=tuple(
                        AcknowledgePartition(
                            partition_index=i32(partition), acknowledgement_batches=tuple(batches)
                        )
                        for partition, batches in named.items()
                    ),
                ),
            ),
        )

    async def interrupt(self) -> None:
        """Have the broker end the session, and so answer a fetch that waits, with what it has.

        That takes another connection: on its own the fetch comes first.
        """
        self._is_ended = True
        try:
            connection = await self._cluster.node(self.node_id)
            request = self._acknowledge_request((), FINAL_EPOCH)
            await connection.call(request, timeout_s=INTERRUPT_TIMEOUT_S)
        except WireError as error:
            logger.debug("a share session at node %d: %s", self.node_id, error)

    async def close(self) -> None:
        """Tell the broker, so that it releases at once what this session still has."""
        if self._epoch == INITIAL_EPOCH or self._connection is None or self._is_ended:
            self.abandon()
            return
        self._epoch = FINAL_EPOCH
        try:
            await self.acknowledge(())
        finally:
            self.abandon()

    def abandon(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self.generation += 1
        self._connection = None
        self._epoch = INITIAL_EPOCH
        self._named = set()

    async def _call(self, request: Any, timeout_s: float) -> Any:
        try:
            if self._connection is None:
                self._connection = await self._cluster.own_connection(self.node_id)
            response = await self._connection.call(request, timeout_s=timeout_s)
            validate_answer(response.error_code, f"the share session of {self.key.group}")
        except BaseException:
            # Also when cancelled: whether the broker has counted the request is not known.
            self.abandon()
            raise
        self._epoch = 1 if self._epoch == EPOCH_MAX else self._epoch + 1
        return response

    def _added(self, partitions: set[int]) -> tuple[FetchTopic, ...]:
        if not partitions:
            return ()
        added = tuple(
            FetchPartition(partition_index=i32(partition), acknowledgement_batches=())
            for partition in sorted(partitions)
        )
        return (FetchTopic(topic_id=self.key.topic_id, partitions=added),)

    def _forgotten(self, partitions: set[int]) -> tuple[ForgottenTopic, ...]:
        if not partitions:
            return ()
        indexes = tuple(i32(partition) for partition in sorted(partitions))
        return (ForgottenTopic(topic_id=self.key.topic_id, partitions=indexes),)

    def _fetched(self, response: Any) -> FetchedShares:
        fetched = FetchedShares(lock_ms=in_milliseconds(response.acquisition_lock_timeout))
        for topic in response.responses:
            for data in topic.partitions:
                partition = data.partition_index
                if data.error_code is not ErrorCode.none:
                    fetched.errors[partition] = data.error_code
                if data.acquired_records:
                    found, gaps = acquired_records(partition, data.records, data.acquired_records)
                    fetched.acquired += found
                    fetched.gaps += gaps
        return fetched


def is_session_lost(error: Exception) -> bool:
    """The broker forgot the session; the next fetch opens another."""
    return isinstance(error, BrokerError) and error.code in {
        ErrorCode.share_session_not_found,
        ErrorCode.invalid_share_session_epoch,
    }
