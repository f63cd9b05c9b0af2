"""The messages between replicas: the fields of the wire messages, for one partition each.

Vote v2, BeginQuorumEpoch v1, EndQuorumEpoch v1, Fetch v18, FetchSnapshot v1, AddRaftVoter v1,
RemoveRaftVoter v0, UpdateRaftVoter v0. The names are those of the wire, except that an id and its
directory id form one `ReplicaKey`.
"""

from typing import NamedTuple

from ottla.protocol.errors import ErrorCode
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import Endpoint, ReplicaKey

NOBODY = -1  # As a leader id: unknown. As a source: not a replica.


class VoteRequest(NamedTuple):
    cluster_id: str | None
    voter: ReplicaKey  # The receiver.
    replica: ReplicaKey  # The sender.
    replica_epoch: int  # The epoch of the election; with `pre_vote`, the one before it.
    last_offset_epoch: int
    last_offset: int  # The sender's log end offset.
    pre_vote: bool


class VoteResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    vote_granted: bool = False
    node_endpoints: tuple[Endpoint, ...] = ()  # The leader's, here and below.


class BeginQuorumEpochRequest(NamedTuple):
    cluster_id: str | None
    voter: ReplicaKey
    leader_id: int
    leader_epoch: int
    leader_endpoints: tuple[Endpoint, ...]


class BeginQuorumEpochResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    node_endpoints: tuple[Endpoint, ...] = ()


class EndQuorumEpochRequest(NamedTuple):
    cluster_id: str | None
    leader_id: int
    leader_epoch: int
    preferred_candidates: tuple[ReplicaKey, ...]  # Longest log first.
    leader_endpoints: tuple[Endpoint, ...]


class EndQuorumEpochResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    node_endpoints: tuple[Endpoint, ...] = ()


class FetchRequest(NamedTuple):
    cluster_id: str | None
    replica: ReplicaKey
    current_leader_epoch: int
    fetch_offset: int  # Everything before it is on the follower's disk.
    last_fetched_epoch: int
    high_watermark: int  # As known to the follower (KIP-1166); a higher one is sent at once.
    max_wait_ms: int
    max_bytes: int


class LogRange(NamedTuple):
    """Whole batches from an offset on, at least one; the driver reads them when it sends."""

    start_offset: int
    end_offset: int
    max_bytes: int


class FetchResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging_epoch: OffsetAndEpoch | None = None
    snapshot_id: OffsetAndEpoch | None = None  # To be fetched instead.
    records: bytes | LogRange = b""  # Bytes on arrival.
    node_endpoints: tuple[Endpoint, ...] = ()


class FetchSnapshotRequest(NamedTuple):
    cluster_id: str | None
    replica: ReplicaKey
    current_leader_epoch: int
    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class SnapshotRange(NamedTuple):
    """Bytes of a snapshot; the driver reads them when it sends."""

    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class FetchSnapshotResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    snapshot_id: OffsetAndEpoch | None = None
    size: int = 0  # Of the whole snapshot.
    position: int = 0
    unaligned_records: bytes | SnapshotRange = b""  # Bytes on arrival.
    node_endpoints: tuple[Endpoint, ...] = ()


class AddRaftVoterRequest(NamedTuple):
    cluster_id: str | None
    timeout_ms: int
    voter: ReplicaKey
    listeners: tuple[Endpoint, ...]
    ack_when_committed: bool = True


class AddRaftVoterResponse(NamedTuple):
    error_code: ErrorCode
    error_message: str | None = None


class RemoveRaftVoterRequest(NamedTuple):
    cluster_id: str | None
    voter: ReplicaKey


class RemoveRaftVoterResponse(NamedTuple):
    error_code: ErrorCode
    error_message: str | None = None


class UpdateRaftVoterRequest(NamedTuple):
    cluster_id: str | None
    current_leader_epoch: int
    voter: ReplicaKey
    listeners: tuple[Endpoint, ...]
    min_supported_version: int
    max_supported_version: int


class UpdateRaftVoterResponse(NamedTuple):
    error_code: ErrorCode
    leader_id: int
    leader_epoch: int
    node_endpoints: tuple[Endpoint, ...] = ()


ReplicaRequest = (
    VoteRequest
    | BeginQuorumEpochRequest
    | EndQuorumEpochRequest
    | FetchRequest
    | FetchSnapshotRequest
)
VoterChangeRequest = AddRaftVoterRequest | RemoveRaftVoterRequest | UpdateRaftVoterRequest
Request = ReplicaRequest | VoterChangeRequest
ReplicaResponse = (
    VoteResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | FetchResponse
    | FetchSnapshotResponse
)
VoterChangeResponse = AddRaftVoterResponse | RemoveRaftVoterResponse | UpdateRaftVoterResponse
Response = ReplicaResponse | VoterChangeResponse


class Message(NamedTuple):
    """A request or a response in transit.

    A response has the correlation id of its request. It must not reach a later incarnation of the
    requesting process: the connection, which ends with the process, ensures that.
    """

    source: int  # A node id, or NOBODY.
    destination: int
    correlation_id: int
    body: Request | Response


def sender_of(request: Request) -> int:
    """The sending replica, if the request names it and it keeps running afterwards."""
    if isinstance(request, VoteRequest | FetchRequest | FetchSnapshotRequest):
        return request.replica.id
    return request.leader_id if isinstance(request, BeginQuorumEpochRequest) else NOBODY
