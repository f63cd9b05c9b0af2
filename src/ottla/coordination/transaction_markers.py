"""Writes transaction markers to the partitions that this broker leads."""

from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.coordination.coordinators import Coordinators
from ottla.machine.transactional import TransactionMarker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.records.decoder import ControlType, Marker, build_marker
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition_leader import ACKS_ALL

if TYPE_CHECKING:
    from ottla.groups.coordinator import GroupMachine


@dataclass(slots=True, eq=False)
class TransactionMarkers:
    replicas: ReplicaManager
    groups: "Coordinators[GroupMachine]"
    now_ms: Callable[[], int]
    loop: AbstractEventLoop

    async def write(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> None:
        """Returns when the marker is committed. A marker may be written more than once.

        Markers for group offsets go to the group coordinator, which holds back the offsets that a
        transaction commits until the transaction is committed.
        """
        if topic_partition.topic == self.groups.topic:
            await self._tell_groups(topic_partition, marker, transaction_version)
        else:
            await self._append(topic_partition, marker, transaction_version)

    async def _tell_groups(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> None:
        log = self.replicas.find(*topic_partition).log
        log.producers.check_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            transaction_version=transaction_version,
        )
        try:
            runtime = self.groups.at(topic_partition.partition)
            await runtime.submit(lambda machine, _: machine.complete_transaction(marker))
        except ApiError as error:
            if error.code is not ErrorCode.not_coordinator:
                raise
            raise ApiError(ErrorCode.not_leader_or_follower, error.message) from error

    def _append(
        self, topic_partition: TopicPartition, marker: TransactionMarker, transaction_version: int
    ) -> "Future[None]":
        partition = self.replicas.find(*topic_partition)
        if partition.is_internal:
            raise ApiError(
                ErrorCode.invalid_topic_exception, f"{topic_partition} cannot be in a transaction"
            )
        leader = partition.leader
        assert leader is not None, "find has looked"
        leader.validate_in_sync_replicas()
        kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
        batch = build_marker(
            Marker(kind, marker.coordinator_epoch),
            timestamp_ms=self.now_ms(),
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
        )
        appended = leader.append_control(batch, transaction_version=transaction_version)
        committed: Future[None] = self.loop.create_future()
        if leader.acknowledged(appended, ACKS_ALL):
            committed.set_result(None)
        else:
            leader.wait_for_acknowledgement(
                appended, ACKS_ALL, lambda error: _settle(committed, error)
            )
        return committed


def _settle(committed: "Future[None]", error: ApiError | None) -> None:
    if committed.done():
        return  # The waiter has gone.
    if error is None:
        committed.set_result(None)
    else:
        committed.set_exception(error)
