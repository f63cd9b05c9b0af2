"""AlterPartition: a partition's leader reports who is in sync (KIP-497, KIP-841, KIP-903)."""

from collections.abc import Container, Sequence
from typing import Final

from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState
from kio.schema.alter_partition.v3.request import PartitionData as WantedPartition
from kio.schema.alter_partition.v3.response import AlterPartitionResponse, PartitionData, TopicData
from kio.schema.types import BrokerId
from kio.static.primitive import i32

from ottla.controller.brokers import validate_broker_epoch
from ottla.controller.image import MetadataImage, TopicImage, merge_partition
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import RECOVERED, RECOVERING
from ottla.controller.partition_index import PartitionKey
from ottla.controller.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
)
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

UNCHECKED_EPOCH: Final = -1  # From a leader that does not know its followers' epochs.


class InSyncControl:
    def __init__(self, image: MetadataImage, leadership: Leadership) -> None:
        self._image = image
        self._leadership = leadership

    def alter_partition(self, request: AlterPartitionRequest) -> Result[AlterPartitionResponse]:
        validate_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        records: dict[PartitionKey, PartitionChangeRecord] = {}
        topics = []
        for asked in request.topics:
            topic = self._image.topic_by_id(asked.topic_id) if asked.topic_id else None
            results = []
            for wanted in asked.partitions:
                try:
                    results.append(self._alter(request.broker_id, topic, wanted, records))
                except ApiError as error:
                    results.append(_refused(wanted.partition_index, error.code))
            topics.append(TopicData(topic_id=asked.topic_id, partitions=tuple(results)))
        response = AlterPartitionResponse(
            throttle_time=NO_THROTTLE, error_code=ErrorCode.none, topics=tuple(topics)
        )
        cause = f"node {request.broker_id} reported an in-sync change"
        return Result(response, tuple(records.values()), cause=cause)

    def _alter(
        self,
        broker_id: BrokerId,
        topic: TopicImage | None,
        wanted: WantedPartition,
        records: dict[PartitionKey, PartitionChangeRecord],
    ) -> PartitionData:
        partition = _find(topic, wanted, records)
        _validate_epochs(partition, broker_id, wanted)
        _validate_isr(partition, wanted)
        self._validate_eligible(partition, wanted.new_isr_with_epochs)
        change = self._leadership.change(partition)
        change.isr = tuple(broker.broker_id for broker in wanted.new_isr_with_epochs)
        change.recovery_state = wanted.leader_recovery_state
        record = change.record()
        if record is not None:
            records[PartitionKey(record.topic_id, record.partition_id)] = record
            partition = merge_partition(partition, record)
            if record.leader not in (LEADER_UNCHANGED, broker_id):
                # The change completed a reassignment that takes the leader away.
                return _refused(wanted.partition_index, ErrorCode.new_leader_elected)
        return PartitionData(
            partition_index=wanted.partition_index,
            error_code=ErrorCode.none,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            isr=partition.isr,
            leader_recovery_state=partition.leader_recovery_state,
            partition_epoch=partition.partition_epoch,
        )

    def _validate_eligible(self, partition: PartitionRecord, isr: Sequence[BrokerState]) -> None:
        """A broker that restarted meanwhile has a different epoch than the leader saw (KIP-903)."""
        for state in isr:
            broker = self._image.brokers.get(state.broker_id)
            if broker is None or not self._leadership.is_active(state.broker_id):
                raise ApiError(
                    ErrorCode.ineligible_replica, f"broker {state.broker_id} is not active"
                )
            if not self._leadership.has_replica(partition, state.broker_id):
                raise ApiError(
                    ErrorCode.ineligible_replica,
                    f"the log directory of broker {state.broker_id} is offline",
                )
            is_joining = state.broker_id not in partition.isr
            if is_joining and not self._leadership.has_room(partition, state.broker_id):
                raise ApiError(
                    ErrorCode.ineligible_replica,
                    f"the log directory of broker {state.broker_id} is full",
                )
            if state.broker_epoch not in (UNCHECKED_EPOCH, broker.broker_epoch):
                raise ApiError(
                    ErrorCode.ineligible_replica,
                    f"broker {state.broker_id} has epoch {broker.broker_epoch}, "
                    f"not {state.broker_epoch}",
                )


def _find(
    topic: TopicImage | None, wanted: WantedPartition, changed: Container[PartitionKey]
) -> PartitionRecord:
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_id, "there is no such topic")
    partition = topic.partitions.get(wanted.partition_index)
    if partition is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, "there is no such partition")
    if PartitionKey(topic.topic_id, wanted.partition_index) in changed:
        raise ApiError(ErrorCode.invalid_request, "the partition is named twice")
    return partition


def _validate_epochs(
    partition: PartitionRecord, broker_id: BrokerId, wanted: WantedPartition
) -> None:
    if (
        wanted.leader_epoch > partition.leader_epoch
        or wanted.partition_epoch > partition.partition_epoch
    ):
        raise ApiError(ErrorCode.not_controller, "the leader knows a later controller")
    if wanted.leader_epoch < partition.leader_epoch:
        raise ApiError(
            ErrorCode.fenced_leader_epoch, f"the leader epoch is {partition.leader_epoch}"
        )
    if broker_id != partition.leader:
        raise ApiError(ErrorCode.invalid_request, f"broker {partition.leader} leads the partition")
    if wanted.partition_epoch < partition.partition_epoch:
        raise ApiError(
            ErrorCode.invalid_update_version, f"the partition epoch is {partition.partition_epoch}"
        )


def _validate_isr(partition: PartitionRecord, wanted: WantedPartition) -> None:
    isr = [broker.broker_id for broker in wanted.new_isr_with_epochs]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        raise ApiError(ErrorCode.invalid_request, "the in-sync set is not one of the replicas")
    if partition.leader not in isr:
        raise ApiError(ErrorCode.invalid_request, "the leader is always in sync")
    if wanted.leader_recovery_state not in (RECOVERED, RECOVERING):
        raise ApiError(ErrorCode.invalid_request, "unknown recovery state")
    if wanted.leader_recovery_state == RECOVERING:
        if len(isr) > 1:
            raise ApiError(ErrorCode.invalid_request, "a leader that recovers is alone in sync")
        if partition.leader_recovery_state == RECOVERED:
            raise ApiError(ErrorCode.invalid_request, "the leader has recovered already")


def _refused(partition_index: i32, code: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=partition_index,
        error_code=code,
        leader_id=NO_LEADER,
        leader_epoch=i32(-1),
        partition_epoch=i32(-1),
    )
