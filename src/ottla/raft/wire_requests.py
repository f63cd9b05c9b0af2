"""Converts the quorum's requests to protocol entities and back.

Only one partition ever occurs, that of the metadata. A message about none, or about another, is a
ProtocolError.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from kio.schema.add_raft_voter.v1 import request as add
from kio.schema.begin_quorum_epoch.v1 import request as begin
from kio.schema.end_quorum_epoch.v1 import request as end
from kio.schema.fetch.v18 import request as fetch
from kio.schema.fetch_snapshot.v1 import request as snapshot
from kio.schema.remove_raft_voter.v0 import request as remove
from kio.schema.types import BrokerId, TopicName
from kio.schema.update_raft_voter.v0 import request as update
from kio.schema.vote.v2 import request as vote
from kio.static.primitive import i16, i32, i64, u16

from ottla.protocol.errors import ProtocolError
from ottla.protocol.messages import fetch as lifted_fetch
from ottla.protocol.times import in_milliseconds, milliseconds
from ottla.protocol.topic_names import CLUSTER_METADATA_TOPIC_ID
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    AddRaftVoterRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    FetchSnapshotRequest,
    RemoveRaftVoterRequest,
    Request,
    UpdateRaftVoterRequest,
    VoteRequest,
)
from ottla.raft.voters import Endpoint, ReplicaKey

METADATA_TOPIC: Final = TopicName(CLUSTER_METADATA_TOPIC)
METADATA_TOPIC_ID: Final = CLUSTER_METADATA_TOPIC_ID
METADATA_PARTITION: Final = i32(0)


def request_to_wire(request: Request) -> object:
    """The entity, in the version that `messages` names."""
    return _TO_WIRE[type(request)](request)


def request_from_wire(entity: object) -> Request:
    return _FROM_WIRE[type(entity)](entity)


def metadata_partition(topics: Sequence[Any]) -> Any:
    """The part about the quorum's only partition; the messages name its fields differently."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise ProtocolError("not about one partition, which is all that the quorum has")
    (topic,) = topics
    (partition,) = topic.partitions
    names = {getattr(topic, name, None) for name in ("topic_name", "name", "topic_id")}
    indexes = {getattr(partition, name, None) for name in ("partition_index", "partition", "index")}
    if not names & {METADATA_TOPIC, METADATA_TOPIC_ID} or METADATA_PARTITION not in indexes:
        raise ProtocolError("not about the partition of the metadata")
    return partition


def _endpoints(items: Sequence[Any]) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(item.name, item.host, item.port) for item in items)


def _listeners(endpoint_type: Callable[..., Any], endpoints: Sequence[Endpoint]) -> tuple[Any, ...]:
    return tuple(
        endpoint_type(name=name, host=host, port=u16(port)) for name, host, port in endpoints
    )


def _vote_to_wire(request: VoteRequest) -> vote.VoteRequest:
    partition = vote.PartitionData(
        partition_index=METADATA_PARTITION,
        replica_epoch=i32(request.replica_epoch),
        replica_id=BrokerId(request.replica.id),
        replica_directory_id=request.replica.directory_id,
        voter_directory_id=request.voter.directory_id,
        last_offset_epoch=i32(request.last_offset_epoch),
        last_offset=i64(request.last_offset),
        pre_vote=request.pre_vote,
    )
    return vote.VoteRequest(
        cluster_id=request.cluster_id,
        voter_id=BrokerId(request.voter.id),
        topics=(vote.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
    )


def _vote_from_wire(entity: vote.VoteRequest) -> VoteRequest:
    partition = metadata_partition(entity.topics)
    return VoteRequest(
        cluster_id=entity.cluster_id,
        voter=ReplicaKey(entity.voter_id, partition.voter_directory_id),
        replica=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        replica_epoch=partition.replica_epoch,
        last_offset_epoch=partition.last_offset_epoch,
        last_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
    )


def _begin_to_wire(request: BeginQuorumEpochRequest) -> begin.BeginQuorumEpochRequest:
    partition = begin.PartitionData(
        partition_index=METADATA_PARTITION,
        voter_directory_id=request.voter.directory_id,
        leader_id=BrokerId(request.leader_id),
        leader_epoch=i32(request.leader_epoch),
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=request.cluster_id,
        voter_id=BrokerId(request.voter.id),
        topics=(begin.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=_listeners(begin.LeaderEndpoint, request.leader_endpoints),
    )


def _begin_from_wire(entity: begin.BeginQuorumEpochRequest) -> BeginQuorumEpochRequest:
    partition = metadata_partition(entity.topics)
    return BeginQuorumEpochRequest(
        cluster_id=entity.cluster_id,
        voter=ReplicaKey(entity.voter_id, partition.voter_directory_id),
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        leader_endpoints=_endpoints(entity.leader_endpoints),
    )


def _end_to_wire(request: EndQuorumEpochRequest) -> end.EndQuorumEpochRequest:
    partition = end.PartitionData(
        partition_index=METADATA_PARTITION,
        leader_id=BrokerId(request.leader_id),
        leader_epoch=i32(request.leader_epoch),
        preferred_candidates=tuple(
            end.ReplicaInfo(candidate_id=BrokerId(key.id), candidate_directory_id=key.directory_id)
            for key in request.preferred_candidates
        ),
    )
    return end.EndQuorumEpochRequest(
        cluster_id=request.cluster_id,
        topics=(end.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        leader_endpoints=_listeners(end.LeaderEndpoint, request.leader_endpoints),
    )


def _end_from_wire(entity: end.EndQuorumEpochRequest) -> EndQuorumEpochRequest:
    partition = metadata_partition(entity.topics)
    return EndQuorumEpochRequest(
        cluster_id=entity.cluster_id,
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        preferred_candidates=tuple(
            ReplicaKey(candidate.candidate_id, candidate.candidate_directory_id)
            for candidate in partition.preferred_candidates
        ),
        leader_endpoints=_endpoints(entity.leader_endpoints),
    )


def _fetch_to_wire(request: FetchRequest) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        partition=METADATA_PARTITION,
        current_leader_epoch=i32(request.current_leader_epoch),
        fetch_offset=i64(request.fetch_offset),
        last_fetched_epoch=i32(request.last_fetched_epoch),
        partition_max_bytes=i32(request.max_bytes),
        replica_directory_id=request.replica.directory_id,
        high_watermark=i64(request.high_watermark),
    )
    return fetch.FetchRequest(
        cluster_id=request.cluster_id,
        replica_state=fetch.ReplicaState(replica_id=BrokerId(request.replica.id)),
        max_wait=milliseconds(request.max_wait_ms),
        min_bytes=i32(0),
        max_bytes=i32(request.max_bytes),
        topics=(fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def _fetch_from_wire(entity: fetch.FetchRequest) -> FetchRequest:
    partition = metadata_partition(entity.topics)
    return FetchRequest(
        cluster_id=entity.cluster_id,
        replica=ReplicaKey(entity.replica_state.replica_id, partition.replica_directory_id),
        current_leader_epoch=partition.current_leader_epoch,
        fetch_offset=partition.fetch_offset,
        last_fetched_epoch=partition.last_fetched_epoch,
        high_watermark=partition.high_watermark,
        max_wait_ms=in_milliseconds(entity.max_wait),
        max_bytes=min(entity.max_bytes, partition.partition_max_bytes),
    )


def _snapshot_to_wire(request: FetchSnapshotRequest) -> snapshot.FetchSnapshotRequest:
    partition = snapshot.PartitionSnapshot(
        partition=METADATA_PARTITION,
        current_leader_epoch=i32(request.current_leader_epoch),
        snapshot_id=snapshot.SnapshotId(
            end_offset=i64(request.snapshot_id.offset), epoch=i32(request.snapshot_id.epoch)
        ),
        position=i64(request.position),
        replica_directory_id=request.replica.directory_id,
    )
    return snapshot.FetchSnapshotRequest(
        cluster_id=request.cluster_id,
        replica_id=BrokerId(request.replica.id),
        max_bytes=i32(request.max_bytes),
        topics=(snapshot.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,)),),
    )


def _snapshot_from_wire(entity: snapshot.FetchSnapshotRequest) -> FetchSnapshotRequest:
    partition = metadata_partition(entity.topics)
    return FetchSnapshotRequest(
        cluster_id=entity.cluster_id,
        replica=ReplicaKey(entity.replica_id, partition.replica_directory_id),
        current_leader_epoch=partition.current_leader_epoch,
        snapshot_id=OffsetAndEpoch(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
        position=partition.position,
        max_bytes=entity.max_bytes,
    )


def _add_to_wire(request: AddRaftVoterRequest) -> add.AddRaftVoterRequest:
    return add.AddRaftVoterRequest(
        cluster_id=request.cluster_id,
        timeout=milliseconds(request.timeout_ms),
        voter_id=i32(request.voter.id),
        voter_directory_id=request.voter.directory_id,
        listeners=_listeners(add.Listener, request.listeners),
        ack_when_committed=request.ack_when_committed,
    )


def _add_from_wire(entity: add.AddRaftVoterRequest) -> AddRaftVoterRequest:
    return AddRaftVoterRequest(
        cluster_id=entity.cluster_id,
        timeout_ms=in_milliseconds(entity.timeout),
        voter=ReplicaKey(entity.voter_id, entity.voter_directory_id),
        listeners=_endpoints(entity.listeners),
        ack_when_committed=entity.ack_when_committed,
    )


def _remove_to_wire(request: RemoveRaftVoterRequest) -> remove.RemoveRaftVoterRequest:
    return remove.RemoveRaftVoterRequest(
        cluster_id=request.cluster_id,
        voter_id=i32(request.voter.id),
        voter_directory_id=request.voter.directory_id,
    )


def _remove_from_wire(entity: remove.RemoveRaftVoterRequest) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(
        cluster_id=entity.cluster_id,
        voter=ReplicaKey(entity.voter_id, entity.voter_directory_id),
    )


def _update_to_wire(request: UpdateRaftVoterRequest) -> update.UpdateRaftVoterRequest:
    return update.UpdateRaftVoterRequest(
        cluster_id=request.cluster_id,
        current_leader_epoch=i32(request.current_leader_epoch),
        voter_id=i32(request.voter.id),
        voter_directory_id=request.voter.directory_id,
        listeners=_listeners(update.Listener, request.listeners),
        k_raft_version_feature=update.KRaftVersionFeature(
            min_supported_version=i16(request.min_supported_version),
            max_supported_version=i16(request.max_supported_version),
        ),
    )


def _update_from_wire(entity: update.UpdateRaftVoterRequest) -> UpdateRaftVoterRequest:
    return UpdateRaftVoterRequest(
        cluster_id=entity.cluster_id,
        current_leader_epoch=entity.current_leader_epoch,
        voter=ReplicaKey(entity.voter_id, entity.voter_directory_id),
        listeners=_endpoints(entity.listeners),
        min_supported_version=entity.k_raft_version_feature.min_supported_version,
        max_supported_version=entity.k_raft_version_feature.max_supported_version,
    )


_TO_WIRE: dict[type, Callable[[Any], object]] = {
    VoteRequest: _vote_to_wire,
    BeginQuorumEpochRequest: _begin_to_wire,
    EndQuorumEpochRequest: _end_to_wire,
    FetchRequest: _fetch_to_wire,
    FetchSnapshotRequest: _snapshot_to_wire,
    AddRaftVoterRequest: _add_to_wire,
    RemoveRaftVoterRequest: _remove_to_wire,
    UpdateRaftVoterRequest: _update_to_wire,
}
_FROM_WIRE: dict[type, Callable[[Any], Request]] = {
    vote.VoteRequest: _vote_from_wire,
    begin.BeginQuorumEpochRequest: _begin_from_wire,
    end.EndQuorumEpochRequest: _end_from_wire,
    fetch.FetchRequest: _fetch_from_wire,
    lifted_fetch.FetchRequest: _fetch_from_wire,
    snapshot.FetchSnapshotRequest: _snapshot_from_wire,
    add.AddRaftVoterRequest: _add_from_wire,
    remove.RemoveRaftVoterRequest: _remove_from_wire,
    update.UpdateRaftVoterRequest: _update_from_wire,
}
