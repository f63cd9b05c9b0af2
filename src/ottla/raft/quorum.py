"""The state of this replica: its transitions, and what the parts of the core share.

Every transition goes through `_become`, which checks it, puts the quorum state that must be saved
into the Ready and drops the requests of the previous state.
"""

from collections.abc import Callable
from dataclasses import replace

from ottla.protocol.entities import entity
from ottla.protocol.errors import ErrorCode
from ottla.raft.config import RaftConfig
from ottla.raft.log import OffsetAndEpoch, PendingLog, ReplicatedLog
from ottla.raft.messages import (
    NOBODY,
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Message,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    ReplicaRequest,
    Request,
    Response,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.quorum_state import QuorumState
from ottla.raft.ready import Ready, RoleChange
from ottla.raft.requests import Requests
from ottla.raft.states import (
    Ballot,
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    State,
    Unattached,
    is_legal,
)
from ottla.raft.voters import Endpoint, ReplicaKey, VoterHistory

Random = Callable[[int], int]  # A number from 0 up to its argument, exclusive.

_REPLICA_RESPONSES: dict[type, type] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
    FetchRequest: FetchResponse,
    FetchSnapshotRequest: FetchSnapshotResponse,
    UpdateRaftVoterRequest: UpdateRaftVoterResponse,
}
_CLIENT_RESPONSES: dict[type, type] = {
    AddRaftVoterRequest: AddRaftVoterResponse,
    RemoveRaftVoterRequest: RemoveRaftVoterResponse,
}


@entity
class Identity:
    cluster_id: str
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    bootstrap: tuple[int, ...] = ()  # Nodes to ask for the leader, besides the voters.


class Quorum:
    def __init__(
        self,
        *,
        identity: Identity,
        config: RaftConfig,
        log: ReplicatedLog,
        voters: VoterHistory,
        saved: QuorumState,
        random: Random,
        now_ms: int,
        committed_offset: int,
    ) -> None:
        self.identity = identity
        self.local = identity.key
        self.config = config
        self.log = PendingLog(log)
        self.voters = voters
        self.random = random
        self.now_ms = now_ms
        self.ready = Ready()
        self.requests = Requests(
            timeout_ms=config.request_timeout_ms, retry_backoff_ms=config.retry_backoff_ms
        )
        snapshot_id = log.latest_snapshot_id
        # Invariant: never decreases; what is before it is in the log or a snapshot, or on its way.
        self.high_watermark = max(
            log.start_offset, snapshot_id.offset if snapshot_id else 0, committed_offset
        )
        self.synced_offset = log.end_offset  # Invariant: <= log.end_offset.
        # While a snapshot replaces the log, nothing is fetched and no election starts.
        self.installing: OffsetAndEpoch | None = None
        self.reason = ""  # Why this replica left its leader, or stopped leading.
        # The epoch whose leader's process was last found to have ended, and how often.
        self.ended_epoch, self.ended_count = -1, 0
        self._saved = saved
        self.state = self._initial_state(saved)

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def is_voter(self) -> bool:
        return self.local in self.voters.latest

    @property
    def can_stand(self) -> bool:
        """True for voters, and for former voters whose removal is not known to be committed.

        KRaft allows only the first. But if the leader of two voters removes itself and fails before
        the record is committed, the remaining voter has the shorter log, and no one could be
        elected (chapter 4.2.2 of Ongaro's dissertation).
        """
        possible = self.voters.possible(self.high_watermark)
        return any(self.local in voters for voters in possible)

    @property
    def leader_id_on_wire(self) -> int:
        leader_id = self.state.leader_id
        return NOBODY if leader_id is None else leader_id

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        """Where to reach a replica, as far as the quorum knows."""
        state = self.state
        if node_id == self.local.id:
            return self.identity.endpoints
        if isinstance(state, Follower | Prospective) and state.leader_id == node_id:
            return state.leader_endpoints
        voter = self.voters.latest.voter(node_id)
        return voter.endpoints if voter else ()

    # Messages.

    def request(self, destination: int, body: ReplicaRequest) -> None:
        correlation_id = self.requests.send(destination, body, self.now_ms)
        self.ready.messages.append(Message(self.local.id, destination, correlation_id, body))

    def reply(self, to: Message, body: Response) -> None:
        self.ready.messages.append(Message(self.local.id, to.source, to.correlation_id, body))

    def answer(
        self, request: Request, error_code: ErrorCode = ErrorCode.none, message: str | None = None
    ) -> Response:
        """A response with only an error and the leader."""
        response: Response
        client = _CLIENT_RESPONSES.get(type(request))
        if client is not None:
            response = client(error_code=error_code, error_message=message)
        else:
            response = _REPLICA_RESPONSES[type(request)](
                error_code=error_code,
                leader_id=self.leader_id_on_wire,
                leader_epoch=self.epoch,
                node_endpoints=self.endpoints_of(self.leader_id_on_wire),
            )
        return response

    # Learning from peers.

    def learn(self, leader_id: int, epoch: int, endpoints: tuple[Endpoint, ...]) -> None:
        """A peer names the leader, or only a higher epoch."""
        is_other = leader_id not in (NOBODY, self.local.id)
        if epoch > self.epoch:
            self.reason = f"another node has seen epoch {epoch}"
            if is_other:
                self.become_follower(epoch, leader_id, endpoints)
            else:
                self.become_unattached(epoch)
        elif epoch == self.epoch and is_other and self._can_follow(leader_id):
            self.become_follower(epoch, leader_id, endpoints)

    def _can_follow(self, leader_id: int) -> bool:
        state = self.state
        if isinstance(state, Unattached):
            return state.leader_id in (None, leader_id)
        return isinstance(state, Candidate | Prospective) and state.leader_id is None

    def is_asked(self, voter: ReplicaKey) -> bool:
        """Whether a request for this voter has reached the right node and disk."""
        return voter.id == self.local.id and voter.directory_id in (None, self.local.directory_id)

    def commit_to(self, offset: int) -> None:
        assert offset > self.high_watermark
        self.high_watermark = offset
        self.ready.high_watermark = offset
        self.voters.forget_before(offset)

    # Transitions.

    def become_unattached(self, epoch: int) -> None:
        state = self.state
        same = epoch == state.epoch
        self._become(
            Unattached(
                epoch=epoch,
                election_deadline_ms=self._election_deadline_ms(),
                leader_id=state.leader_id if same else None,
                voted=state.voted if same else None,
            )
        )

    def become_prospective(self) -> None:
        state = self.state
        assert self.can_stand
        self._become(
            Prospective(
                epoch=state.epoch,
                election_deadline_ms=self._election_deadline_ms(),
                ballot=self._own_ballot(),
                leader_id=state.leader_id,
                leader_endpoints=state.leader_endpoints if isinstance(state, Follower) else (),
                voted=state.voted,
                elections_lost=state.elections_lost if isinstance(state, Candidate) else 0,
            )
        )

    def become_candidate(self) -> None:
        state = self.state
        assert isinstance(state, Prospective)
        assert state.ballot.is_won
        self._become(
            Candidate(
                epoch=state.epoch + 1,
                election_deadline_ms=self._election_deadline_ms(),
                ballot=self._own_ballot(),
                voted=self.local,
                elections_lost=state.elections_lost,
            )
        )

    def become_leader(self) -> Leader:
        state = self.state
        assert isinstance(state, Candidate)
        assert state.ballot.is_won
        leader = Leader(
            epoch=state.epoch,
            leader_id=self.local.id,
            voted=state.voted,
            epoch_start_offset=self.log.end_offset,
            check_quorum_deadline_ms=self.now_ms + self.config.check_quorum_timeout_ms,
            begin_epoch_deadline_ms=self.now_ms,
        )
        self._become(leader)
        return leader

    def become_follower(
        self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...] = ()
    ) -> None:
        same = epoch == self.epoch
        assert leader_id != self.local.id
        assert not same or self.state.leader_id in (None, leader_id), "two leaders in an epoch"
        self._become(
            Follower(
                epoch=epoch,
                leader_id=leader_id,
                leader_endpoints=endpoints or self.endpoints_of(leader_id),
                fetch_deadline_ms=self.now_ms + self.config.fetch_timeout_ms,
                voted=self.state.voted if same else None,
            )
        )

    def become_resigned(self, preferred_candidates: tuple[ReplicaKey, ...]) -> None:
        assert isinstance(self.state, Leader)
        self._become(
            Resigned(
                epoch=self.epoch,
                leader_id=self.local.id,
                voted=self.state.voted,
                election_deadline_ms=self._election_deadline_ms(),
                preferred_candidates=preferred_candidates,
            )
        )

    def vote_for(self, candidate: ReplicaKey) -> None:
        state = self.state
        assert isinstance(state, Unattached | Prospective)
        assert state.voted in (None, candidate)
        if state.voted is None:
            deadline_ms = self._election_deadline_ms()
            self._become(replace(state, voted=candidate, election_deadline_ms=deadline_ms))

    def _become(self, state: State) -> None:
        before = self.state
        assert is_legal(before.role, state.role), (before, state)
        assert state.epoch >= before.epoch, (before, state)
        self.state = state
        self.requests.forget_all()
        durable = _durable(state)
        if durable != self._saved:
            self._saved = durable
            self.ready.quorum_state = durable
        if (before.role, before.epoch, before.leader_id) != (
            state.role,
            state.epoch,
            state.leader_id,
        ):
            self.ready.role_change = RoleChange(
                state.role,
                state.epoch,
                state.leader_id,
                state.epoch_start_offset if isinstance(state, Leader) else None,
                self.reason,
            )

    def _initial_state(self, saved: QuorumState) -> State:
        epoch, leader_id = saved.leader_epoch, saved.leader_id
        deadline_ms = self._election_deadline_ms()
        if leader_id == self.local.id:
            # This disk may have lost what it served in this epoch, so it cannot resume the epoch.
            return Resigned(
                epoch=epoch,
                leader_id=leader_id,
                voted=saved.voted,
                election_deadline_ms=deadline_ms,
            )
        leader = None if leader_id is None else self.voters.latest.voter(leader_id)
        if leader is not None:
            return Follower(
                epoch=epoch,
                leader_id=leader.key.id,
                leader_endpoints=leader.endpoints,
                fetch_deadline_ms=self.now_ms + self.config.fetch_timeout_ms,
                voted=saved.voted,
            )
        return Unattached(
            epoch=epoch,
            election_deadline_ms=deadline_ms,
            leader_id=leader_id,
            voted=saved.voted,
        )

    def _own_ballot(self) -> Ballot:
        ballot = Ballot(self.voters.latest)
        ballot.record(self.local.id, granted=True)
        return ballot

    def _election_deadline_ms(self) -> int:
        timeout_ms = self.config.election_timeout_ms
        return self.now_ms + timeout_ms + self.random(timeout_ms)


def _durable(state: State) -> QuorumState:
    return QuorumState(state.epoch, state.leader_id, state.voted)
