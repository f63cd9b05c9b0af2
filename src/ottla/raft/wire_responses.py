"""Converts the quorum's responses to protocol entities and back.

The wire has no listener name with the leader's address; a parsed address gets the name of the
listener that the replicas use, which the caller passes. A request from another cluster is answered
with a top-level error, without a partition.
"""

from collections.abc import Callable
from typing import Any

from kio.schema.add_raft_voter.v1 import response as add
from kio.schema.begin_quorum_epoch.v1 import response as begin
from kio.schema.end_quorum_epoch.v1 import response as end
from kio.schema.fetch.v18 import response as fetch
from kio.schema.fetch_snapshot.v1 import response as snapshot
from kio.schema.remove_raft_voter.v0 import response as remove
from kio.schema.types import BrokerId
from kio.schema.update_raft_voter.v0 import response as update
from kio.schema.vote.v2 import response as vote
from kio.static.primitive import Records, i32, i64, u16

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages import fetch as lifted_fetch
from ottla.protocol.times import NO_THROTTLE
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    NOBODY,
    AddRaftVoterResponse,
    BeginQuorumEpochResponse,
    EndQuorumEpochResponse,
    FetchResponse,
    FetchSnapshotResponse,
    RemoveRaftVoterResponse,
    Response,
    UpdateRaftVoterResponse,
    VoteResponse,
)
from ottla.raft.voters import Endpoint
from ottla.raft.wire_requests import (
    METADATA_PARTITION,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    metadata_partition,
)

_NO_EPOCH = -1


def response_to_wire(response: Response) -> object:
    """The entity; ranges of a log or a snapshot have been replaced by their bytes."""
    return _TO_WIRE[type(response)](response)


def response_from_wire(entity: object, listener_name: str) -> Response:
    return _FROM_WIRE[type(entity)](entity, listener_name)


def _is_at_the_top(code: ErrorCode) -> bool:
    return code is ErrorCode.inconsistent_cluster_id


def _about(topic: Any, code: ErrorCode) -> tuple[Any, ...]:
    return () if _is_at_the_top(code) else (topic,)


def _top_fields(kind: Any, response: Any) -> dict[str, Any]:
    """The fields besides the topics in every response that names the leader."""
    code: ErrorCode = response.error_code
    return {
        "error_code": code if _is_at_the_top(code) else ErrorCode.none,
        "node_endpoints": tuple(
            kind.NodeEndpoint(node_id=BrokerId(response.leader_id), host=host, port=u16(port))
            for _, host, port in response.node_endpoints
        ),
    }


def _nobody(entity: Any) -> dict[str, Any]:
    """The fields of a response with a top-level error."""
    return {"error_code": entity.error_code, "leader_id": NOBODY, "leader_epoch": _NO_EPOCH}


def _endpoints(entity: Any, name: str) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(name, node.host, node.port) for node in entity.node_endpoints)


def _log_end(offset: int, epoch: int) -> OffsetAndEpoch | None:
    return None if epoch == _NO_EPOCH else OffsetAndEpoch(offset, epoch)


def _leader_to_wire(kind: Any, entity: type[Any], *details: str) -> Callable[[Any], object]:
    """For Vote, BeginQuorumEpoch or EndQuorumEpoch; `details` are fields of the partition."""

    def to_wire(response: Any) -> object:
        partition = kind.PartitionData(
            partition_index=METADATA_PARTITION,
            error_code=response.error_code,
            leader_id=BrokerId(response.leader_id),
            leader_epoch=i32(response.leader_epoch),
            **{name: getattr(response, name) for name in details},
        )
        topic = kind.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
        return entity(topics=_about(topic, response.error_code), **_top_fields(kind, response))

    return to_wire


def _leader_from_wire(
    kind: Callable[..., Response], *details: str
) -> Callable[[Any, str], Response]:
    names = ("error_code", "leader_id", "leader_epoch", *details)

    def from_wire(entity: Any, listener_name: str) -> Response:
        if entity.error_code is not ErrorCode.none:
            return kind(**_nobody(entity))
        partition = metadata_partition(entity.topics)
        fields = {name: getattr(partition, name) for name in names}
        return kind(**fields, node_endpoints=_endpoints(entity, listener_name))

    return from_wire


def _fetch_to_wire(response: FetchResponse) -> fetch.FetchResponse:
    assert isinstance(response.records, bytes)
    diverging = response.diverging_epoch or OffsetAndEpoch(_NO_EPOCH, _NO_EPOCH)
    snapshot_id = response.snapshot_id or OffsetAndEpoch(_NO_EPOCH, _NO_EPOCH)
    partition = fetch.PartitionData(
        partition_index=METADATA_PARTITION,
        error_code=response.error_code,
        high_watermark=i64(response.high_watermark),
        log_start_offset=i64(response.log_start_offset),
        diverging_epoch=fetch.EpochEndOffset(
            epoch=i32(diverging.epoch), end_offset=i64(diverging.offset)
        ),
        current_leader=fetch.LeaderIdAndEpoch(
            leader_id=BrokerId(response.leader_id), leader_epoch=i32(response.leader_epoch)
        ),
        snapshot_id=fetch.SnapshotId(
            end_offset=i64(snapshot_id.offset), epoch=i32(snapshot_id.epoch)
        ),
        aborted_transactions=None,
        records=Records(response.records),
    )
    topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    return fetch.FetchResponse(
        throttle_time=NO_THROTTLE,
        responses=_about(topic, response.error_code),
        **_top_fields(fetch, response),
    )


def _fetch_from_wire(entity: fetch.FetchResponse, name: str) -> FetchResponse:
    if entity.error_code is not ErrorCode.none:
        return FetchResponse(**_nobody(entity))
    partition = metadata_partition(entity.responses)
    diverging, snapshot_id = partition.diverging_epoch, partition.snapshot_id
    return FetchResponse(
        error_code=partition.error_code,
        leader_id=partition.current_leader.leader_id,
        leader_epoch=partition.current_leader.leader_epoch,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        diverging_epoch=_log_end(diverging.end_offset, diverging.epoch),
        snapshot_id=_log_end(snapshot_id.end_offset, snapshot_id.epoch),
        records=bytes(partition.records or b""),
        node_endpoints=_endpoints(entity, name),
    )


def _snapshot_to_wire(response: FetchSnapshotResponse) -> snapshot.FetchSnapshotResponse:
    assert isinstance(response.unaligned_records, bytes)
    snapshot_id = response.snapshot_id or OffsetAndEpoch(_NO_EPOCH, _NO_EPOCH)
    partition = snapshot.PartitionSnapshot(
        index=METADATA_PARTITION,
        error_code=response.error_code,
        snapshot_id=snapshot.SnapshotId(
            end_offset=i64(snapshot_id.offset), epoch=i32(snapshot_id.epoch)
        ),
        current_leader=snapshot.LeaderIdAndEpoch(
            leader_id=BrokerId(response.leader_id), leader_epoch=i32(response.leader_epoch)
        ),
        size=i64(response.size),
        position=i64(response.position),
        unaligned_records=Records(response.unaligned_records),
    )
    topic = snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return snapshot.FetchSnapshotResponse(
        throttle_time=NO_THROTTLE,
        topics=_about(topic, response.error_code),
        **_top_fields(snapshot, response),
    )


def _snapshot_from_wire(entity: snapshot.FetchSnapshotResponse, name: str) -> FetchSnapshotResponse:
    if entity.error_code is not ErrorCode.none:
        return FetchSnapshotResponse(**_nobody(entity))
    partition = metadata_partition(entity.topics)
    return FetchSnapshotResponse(
        error_code=partition.error_code,
        leader_id=partition.current_leader.leader_id,
        leader_epoch=partition.current_leader.leader_epoch,
        snapshot_id=_log_end(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        size=partition.size,
        position=partition.position,
        unaligned_records=bytes(partition.unaligned_records),
        node_endpoints=_endpoints(entity, name),
    )


def _outcome_to_wire(entity: Callable[..., object]) -> Callable[[Any], object]:
    """For AddRaftVoter and RemoveRaftVoter."""
    return lambda response: entity(
        throttle_time=NO_THROTTLE,
        error_code=response.error_code,
        error_message=response.error_message,
    )


def _outcome_from_wire(kind: Callable[..., Response]) -> Callable[[Any, str], Response]:
    return lambda entity, _: kind(entity.error_code, entity.error_message)


def _update_to_wire(response: UpdateRaftVoterResponse) -> update.UpdateRaftVoterResponse:
    _, host, port = response.node_endpoints[0] if response.node_endpoints else ("", "", 0)
    return update.UpdateRaftVoterResponse(
        throttle_time=NO_THROTTLE,
        error_code=response.error_code,
        current_leader=update.CurrentLeader(
            leader_id=BrokerId(response.leader_id),
            leader_epoch=i32(response.leader_epoch),
            host=host,
            port=i32(port),
        ),
    )


def _update_from_wire(entity: update.UpdateRaftVoterResponse, name: str) -> UpdateRaftVoterResponse:
    leader = entity.current_leader
    return UpdateRaftVoterResponse(
        error_code=entity.error_code,
        leader_id=leader.leader_id,
        leader_epoch=leader.leader_epoch,
        node_endpoints=(Endpoint(name, leader.host, leader.port),) if leader.host else (),
    )


_TO_WIRE: dict[type, Callable[[Any], object]] = {
    VoteResponse: _leader_to_wire(vote, vote.VoteResponse, "vote_granted"),
    BeginQuorumEpochResponse: _leader_to_wire(begin, begin.BeginQuorumEpochResponse),
    EndQuorumEpochResponse: _leader_to_wire(end, end.EndQuorumEpochResponse),
    FetchResponse: _fetch_to_wire,
    FetchSnapshotResponse: _snapshot_to_wire,
    AddRaftVoterResponse: _outcome_to_wire(add.AddRaftVoterResponse),
    RemoveRaftVoterResponse: _outcome_to_wire(remove.RemoveRaftVoterResponse),
    UpdateRaftVoterResponse: _update_to_wire,
}
_FROM_WIRE: dict[type, Callable[[Any, str], Response]] = {
    vote.VoteResponse: _leader_from_wire(VoteResponse, "vote_granted"),
    begin.BeginQuorumEpochResponse: _leader_from_wire(BeginQuorumEpochResponse),
    end.EndQuorumEpochResponse: _leader_from_wire(EndQuorumEpochResponse),
    fetch.FetchResponse: _fetch_from_wire,
    lifted_fetch.FetchResponse: _fetch_from_wire,
    snapshot.FetchSnapshotResponse: _snapshot_from_wire,
    add.AddRaftVoterResponse: _outcome_from_wire(AddRaftVoterResponse),
    remove.RemoveRaftVoterResponse: _outcome_from_wire(RemoveRaftVoterResponse),
    update.UpdateRaftVoterResponse: _update_from_wire,
}
