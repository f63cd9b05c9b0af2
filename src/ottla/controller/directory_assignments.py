"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858)."""

from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0 import response
from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse
from kio.static.primitive import i32

from ottla.controller.brokers import validate_broker_epoch
from ottla.controller.directories import LOST, directory_of, is_online
from ottla.controller.image import MetadataImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Departure, Election
from ottla.controller.partition_index import PartitionKey
from ottla.controller.records import (
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

_Assignment = tuple[UUID | None, UUID | None, i32]  # Directory, topic and partition.


class DirectoryAssignments:
    def __init__(self, image: MetadataImage, leadership: Leadership) -> None:
        self._image = image
        self._leadership = leadership

    def assign_replicas_to_dirs(
        self, request: AssignReplicasToDirsRequest
    ) -> Result[AssignReplicasToDirsResponse]:
        broker = validate_broker_epoch(self._image, request.broker_id, request.broker_epoch)
        records: dict[PartitionKey, PartitionChangeRecord] = {}
        codes: dict[_Assignment, ErrorCode] = {}
        for directory in request.directories:
            for topic in directory.topics:
                for partition in topic.partitions:
                    assignment = (directory.id_, topic.topic_id, partition.partition_index)
                    try:
                        self._assign(broker, *assignment, records)
                        codes[assignment] = ErrorCode.none
                    except ApiError as error:
                        codes[assignment] = error.code
        cause = f"node {request.broker_id} reported the log directories of its replicas"
        return Result(_response(request, codes), tuple(records.values()), cause=cause)

    def _assign(
        self,
        broker: RegisterBrokerRecord,
        directory: UUID | None,
        topic_id: UUID | None,
        index: i32,
        records: dict[PartitionKey, PartitionChangeRecord],
    ) -> None:
        """A replica in a directory that has failed meanwhile loses leadership.

        One that is no longer in its lost directory is a new replica, without data.
        """
        partition = _find(self._image, broker.broker_id, topic_id, index)
        key = PartitionKey(partition.topic_id, index)
        if key in records:
            raise ApiError(ErrorCode.invalid_request, "the partition is named twice")
        before = directory_of(partition, broker.broker_id)
        if directory == before:
            return
        if directory == LOST:
            records[key] = self._lose(broker, partition)
            return
        change = self._leadership.change(partition)
        change.moved = (broker.broker_id, directory)
        if not is_online(broker, before):
            change.remove(broker.broker_id, Departure.LOST)
        elif not is_online(broker, directory):
            change.remove(broker.broker_id, Departure.INTACT)
        elif self._leadership.is_active(broker.broker_id):
            change.also_active = broker.broker_id
        record = change.record()
        if record is not None:
            records[key] = record

    def _lose(
        self, broker: RegisterBrokerRecord, partition: PartitionRecord
    ) -> PartitionChangeRecord:
        """The replica is damaged and will be copied again, so it counts as empty.

        Rejected if there would be no leader without it.
        """
        change = self._leadership.change(partition, Election.ONLINE)
        change.moved = (broker.broker_id, LOST)
        change.remove(broker.broker_id, Departure.LOST)
        record = change.record()
        assert record is not None, "its directory changes"
        leader = partition.leader if record.leader is None else record.leader
        if leader == NO_LEADER:
            raise ApiError(
                ErrorCode.eligible_leaders_not_available, "no other replica has everything"
            )
        return record


def _find(
    image: MetadataImage, broker_id: int, topic_id: UUID | None, index: int
) -> PartitionRecord:
    """The partition that the broker reports as its own."""
    topic = image.topic_by_id(topic_id) if topic_id else None
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_id, "there is no such topic")
    partition = topic.partitions.get(index)
    if partition is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, "there is no such partition")
    if broker_id not in partition.replicas:
        raise ApiError(ErrorCode.not_leader_or_follower, f"broker {broker_id} has no replica of it")
    return partition


def _response(
    request: AssignReplicasToDirsRequest,
    codes: dict[tuple[UUID | None, UUID | None, i32], ErrorCode],
) -> response.AssignReplicasToDirsResponse:
    return response.AssignReplicasToDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        directories=tuple(
            response.DirectoryData(
                id_=directory.id_,
                topics=tuple(
                    response.TopicData(
                        topic_id=topic.topic_id,
                        partitions=tuple(
                            response.PartitionData(
                                partition_index=partition.partition_index,
                                error_code=codes[
                                    directory.id_, topic.topic_id, partition.partition_index
                                ],
                            )
                            for partition in topic.partitions
                        ),
                    )
                    for topic in directory.topics
                ),
            )
            for directory in request.directories
        ),
    )
