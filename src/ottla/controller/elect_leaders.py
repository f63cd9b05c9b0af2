"""ElectLeaders: elections on request (KIP-183, KIP-460)."""

from typing import Final

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Election
from ottla.controller.partition_index import PartitionIndex, PartitionKey
from ottla.controller.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
)
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # The values in ElectLeaders.
_NOT_AVAILABLE: Final = {
    Election.PREFERRED: ErrorCode.preferred_leader_not_available,
    Election.UNCLEAN: ErrorCode.eligible_leaders_not_available,
}


class ElectionRequests:
    def __init__(self, image: MetadataImage, index: PartitionIndex, leadership: Leadership) -> None:
        self._image = image
        self._index = index
        self._leadership = leadership

    def elect_leaders(self, request: ElectLeadersRequest) -> Result[ElectLeadersResponse]:
        election = _ELECTIONS.get(request.election_type)
        if election is None:
            raise ApiError(
                ErrorCode.invalid_request, f"unknown election type {request.election_type}"
            )
        records: dict[PartitionKey, PartitionChangeRecord] = {}
        if request.topic_partitions is None:
            results = self._elect_everywhere(election, records)
        else:
            results = [
                ReplicaElectionResult(
                    topic=asked.topic,
                    partition_result=tuple(
                        self._elect(asked.topic, index, election, records)
                        for index in asked.partitions
                    ),
                )
                for asked in request.topic_partitions
            ]
        response = ElectLeadersResponse(
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.none,
            replica_election_results=tuple(results),
        )
        return Result(response, tuple(records.values()), cause="leaders were asked for")

    def _elect_everywhere(
        self, election: Election, records: dict[PartitionKey, PartitionChangeRecord]
    ) -> list[ReplicaElectionResult]:
        """Returns results only for partitions that need a leader."""
        index = self._index
        found = index.not_preferred() if election is Election.PREFERRED else index.leaderless()
        results: dict[str, list[PartitionResult]] = {}
        for partition in found:
            topic = self._image.topics_by_id[partition.topic_id]
            result = self._elect(topic.name, partition.partition_id, election, records)
            results.setdefault(topic.name, []).append(result)
        return [
            ReplicaElectionResult(
                topic=self._image.topics[name].name, partition_result=tuple(partitions)
            )
            for name, partitions in results.items()
        ]

    def _elect(
        self,
        topic: TopicName,
        index: i32,
        election: Election,
        records: dict[PartitionKey, PartitionChangeRecord],
    ) -> PartitionResult:
        code, message = ErrorCode.none, None
        try:
            record = self._election(topic, index, election)
            records[PartitionKey(record.topic_id, record.partition_id)] = record
        except ApiError as error:
            code, message = error.code, error.message
        return PartitionResult(partition_id=index, error_code=code, error_message=message)

    def _election(self, topic: TopicName, index: i32, election: Election) -> PartitionChangeRecord:
        partition = self._partition(topic, index)
        if _has_wanted_leader(partition, election):
            raise ApiError(ErrorCode.election_not_needed, f"broker {partition.leader} leads it")
        record = self._leadership.change(partition, election).record()
        if record is None or record.leader == LEADER_UNCHANGED:
            raise ApiError(_NOT_AVAILABLE[election], _why_nobody(partition, election))
        return record

    def _partition(self, name: TopicName, index: i32) -> PartitionRecord:
        topic = self._image.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"No such topic as {name}")
        partition = topic.partitions.get(index)
        if partition is None:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition, f"No such partition as {name}-{index}"
            )
        return partition


def _why_nobody(partition: PartitionRecord, election: Election) -> str:
    if election is Election.PREFERRED:
        return (
            "The preferred leader was not available."
            f" Broker {partition.replicas[0]} is down or out of sync."
        )
    return "no broker that could lead it is active"


def _has_wanted_leader(partition: PartitionRecord, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.leader != NO_LEADER
