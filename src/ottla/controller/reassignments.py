"""Reassignments: partitions get other replicas (KIP-455).

A reassignment first adds the new replicas to the old ones. Once all target replicas are in sync,
the others are removed; `PartitionChange` does that with whatever change completes it. A later
request replaces an earlier one, and replicas that only the earlier one would have added are dropped
at once. Cancelling a reassignment reassigns to the original replicas.
"""

from collections.abc import Iterator

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.types import TopicName

from ottla.controller.image import MetadataImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Election, PartitionChange, Replicas
from ottla.controller.partition_index import PartitionIndex, PartitionKey
from ottla.controller.partitions import candidates
from ottla.controller.placement import validate_manual
from ottla.controller.records import PartitionChangeRecord, PartitionRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

_Records = dict[PartitionKey, PartitionChangeRecord]


class ReassignmentControl:
    def __init__(self, image: MetadataImage, index: PartitionIndex, leadership: Leadership) -> None:
        self._image = image
        self._index = index
        self._leadership = leadership

    def alter_partition_reassignments(
        self, request: AlterPartitionReassignmentsRequest
    ) -> Result[AlterPartitionReassignmentsResponse]:
        records: _Records = {}
        may_change_count = request.allow_replication_factor_change
        responses = tuple(
            ReassignableTopicResponse(
                name=topic.name,
                partitions=tuple(
                    self._answer(topic.name, target, records, may_change_count=may_change_count)
                    for target in topic.partitions
                ),
            )
            for topic in request.topics
        )
        response = AlterPartitionReassignmentsResponse(
            throttle_time=NO_THROTTLE,
            allow_replication_factor_change=may_change_count,
            error_code=ErrorCode.none,
            error_message=None,
            responses=responses,
        )
        return Result(response, tuple(records.values()), cause="partitions were reassigned")

    def list_partition_reassignments(
        self, request: ListPartitionReassignmentsRequest
    ) -> Result[ListPartitionReassignmentsResponse]:
        ongoing: dict[TopicName, list[OngoingPartitionReassignment]] = {}
        for name, partition in self._asked(request):
            if _is_reassigned(partition):
                ongoing.setdefault(name, []).append(_ongoing(partition))
        response = ListPartitionReassignmentsResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            error_message=None,
            topics=tuple(
                OngoingTopicReassignment(name=name, partitions=tuple(partitions))
                for name, partitions in ongoing.items()
            ),
        )
        return Result(response)

    def _answer(
        self,
        topic: TopicName,
        target: ReassignablePartition,
        records: _Records,
        *,
        may_change_count: bool,
    ) -> ReassignablePartitionResponse:
        code, message = ErrorCode.none, None
        try:
            partition = self._find(topic, target, records)
            record = self._retargeted(partition, target.replicas, may_change_count).record()
            if record is not None:
                records[PartitionKey(record.topic_id, record.partition_id)] = record
        except ApiError as error:
            code, message = error.code, error.message
        return ReassignablePartitionResponse(
            partition_index=target.partition_index, error_code=code, error_message=message
        )

    def _find(
        self, topic: TopicName, target: ReassignablePartition, records: _Records
    ) -> PartitionRecord:
        partition = self._image.partition(topic, target.partition_index)
        if partition is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition,
                f"there is no partition {target.partition_index} of a topic {topic!r}",
            )
        if PartitionKey(partition.topic_id, partition.partition_id) in records:
            raise ApiError(ErrorCode.invalid_request, "the partition is named twice")
        return partition

    def _retargeted(
        self, partition: PartitionRecord, target: Replicas | None, may_change_count: bool
    ) -> PartitionChange:
        present = _original(partition)
        if target is None:
            if not _is_reassigned(partition):
                raise ApiError(
                    ErrorCode.no_reassignment_in_progress, "the partition is not reassigned"
                )
            wanted = present
        else:
            wanted = target
            validate_manual(wanted, candidates(self._image), None, present)
            if not may_change_count:
                _validate_same_count(_intended(partition), wanted)
        change = self._leadership.change(partition)
        change.removing = tuple(replica for replica in present if replica not in wanted)
        change.adding = tuple(replica for replica in wanted if replica not in present)
        change.replicas = (*wanted, *change.removing)
        change.isr = tuple(replica for replica in partition.isr if replica in change.replicas)
        if partition.isr and not change.isr and change.election is not Election.UNCLEAN:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                "only replicas that this would drop are in sync; it needs an unclean election",
            )
        return change

    def _asked(
        self, request: ListPartitionReassignmentsRequest
    ) -> Iterator[tuple[TopicName, PartitionRecord]]:
        if request.topics is None:
            for partition in self._index.reassigned():
                yield self._image.topics_by_id[partition.topic_id].name, partition
            return
        for topic in request.topics:
            for index in dict.fromkeys(topic.partition_indexes):
                found = self._image.partition(topic.name, index)
                if found is not None:
                    yield topic.name, found


def _original(partition: PartitionRecord) -> Replicas:
    """The replicas before the reassignment, if there is one."""
    return tuple(
        replica for replica in partition.replicas if replica not in partition.adding_replicas
    )


def _intended(partition: PartitionRecord) -> Replicas:
    """The replicas as they will be after the reassignment, if there is one."""
    return tuple(
        replica for replica in partition.replicas if replica not in partition.removing_replicas
    )


def _validate_same_count(intended: Replicas, wanted: Replicas) -> None:
    if len(wanted) != len(intended):
        raise ApiError(
            ErrorCode.invalid_replication_factor,
            f"The replication factor is changed from {len(intended)} to {len(wanted)}",
        )


def _is_reassigned(partition: PartitionRecord) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _ongoing(partition: PartitionRecord) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.partition_id,
        replicas=partition.replicas,
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
    )
