"""Elections: those that are asked for (ElectLeaders), and those that the controller holds itself.

From time to time it looks after the partitions whose leader is not the first of their replicas: who
is back in sync leads again, so that a broker that was away gets its share back. It also looks after
those without a leader: their topic may allow an unclean election by now.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage, TopicImage
from ottla.controller.leadership import Leadership
from ottla.controller.partition_change import Election
from ottla.controller.partition_index import PartitionIndex, PartitionKey
from ottla.controller.records import (
    LEADER_UNCHANGED,
    NO_LEADER,
    PartitionChangeRecord,
    PartitionRecord,
)
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

ELECTIONS_PER_STEP: Final = 1000
_TIMER: Final = "elections"
_ELECTIONS: Final = {0: Election.PREFERRED, 1: Election.UNCLEAN}  # The numbers of ElectLeaders.
_NOT_AVAILABLE: Final = {
    Election.PREFERRED: ErrorCode.preferred_leader_not_available,
    Election.UNCLEAN: ErrorCode.eligible_leaders_not_available,
}


class ElectionControl:
    """`preferred` says whether leaders return to the first replica by themselves."""

    def __init__(
        self,
        image: MetadataImage,
        index: PartitionIndex,
        leadership: Leadership,
        timers: Timers,
        *,
        preferred: bool,
        interval_ms: int,
    ) -> None:
        self._image = image
        self._index = index
        self._leadership = leadership
        self._timers = timers
        self._preferred = preferred
        self._interval_ms = interval_ms

    def on_loaded(self, now_ms: int) -> None:
        self.elect_soon(now_ms)

    def elect_soon(self, now_ms: int) -> None:
        """There is more to elect than one operation can."""
        self._timers.schedule(_TIMER, now_ms, self._elect_in_turn)

    def elect_with(self, broker_id: int) -> Iterator[PartitionChangeRecord]:
        """The broker is active from now on: leaders for the partitions that may have waited."""
        is_active = self._leadership.is_active
        for partition in self._index.leaderless():
            if broker_id not in partition.replicas:
                continue
            change = self._leadership.change(partition)
            change.is_active = lambda replica: replica == broker_id or is_active(replica)
            record = change.record()
            if record is not None:
                yield record

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
                        self._elect(self._image.topics.get(asked.topic), index, election, records)
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
        return Result(response, tuple(records.values()))

    def _elect_everywhere(
        self, election: Election, records: dict[PartitionKey, PartitionChangeRecord]
    ) -> list[ReplicaElectionResult]:
        """Only those that need a leader are answered for."""
        index = self._index
        found = index.not_preferred() if election is Election.PREFERRED else index.leaderless()
        results: dict[str, list[PartitionResult]] = {}
        for partition in found:
            topic = self._image.topics_by_id[partition.topic_id]
            result = self._elect(topic, partition.partition_id, election, records)
            results.setdefault(topic.name, []).append(result)
        return [
            ReplicaElectionResult(
                topic=self._image.topics[name].name, partition_result=tuple(partitions)
            )
            for name, partitions in results.items()
        ]

    def _elect(
        self,
        topic: TopicImage | None,
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

    def _election(
        self, topic: TopicImage | None, index: i32, election: Election
    ) -> PartitionChangeRecord:
        partition = None if topic is None else topic.partitions.get(index)
        if partition is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, "there is no such partition")
        if _has_wanted_leader(partition, election):
            raise ApiError(ErrorCode.election_not_needed, f"broker {partition.leader} leads it")
        record = self._leadership.change(partition, election).record()
        if record is None or record.leader == LEADER_UNCHANGED:
            raise ApiError(_NOT_AVAILABLE[election], "no broker that could lead it is active")
        return record

    def _elect_in_turn(self, now_ms: int) -> Result[None]:
        records = tuple(islice(self._pending(), ELECTIONS_PER_STEP))
        is_more = len(records) == ELECTIONS_PER_STEP
        deadline_ms = now_ms if is_more else now_ms + self._interval_ms
        self._timers.schedule(_TIMER, deadline_ms, self._elect_in_turn)
        return Result(None, records)

    def _pending(self) -> Iterator[PartitionChangeRecord]:
        leaderless = ((partition, None) for partition in self._index.leaderless())
        not_preferred = (
            (partition, Election.PREFERRED)
            for partition in (self._index.not_preferred() if self._preferred else ())
            if partition.leader != NO_LEADER
        )
        for partition, election in chain(leaderless, not_preferred):
            record = self._leadership.change(partition, election).record()
            if record is not None:
                yield record


def _has_wanted_leader(partition: PartitionRecord, election: Election) -> bool:
    if election is Election.PREFERRED:
        return partition.leader == partition.replicas[0]
    return partition.leader != NO_LEADER
