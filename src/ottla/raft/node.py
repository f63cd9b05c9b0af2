"""A replica of the quorum: calls go in, a `Ready` comes out.

    tick(now_ms)           time has passed; call it at `next_deadline_ms`, and before other calls
    step(message)          a request or a response of a peer has arrived
    append(batch)          the leader appends
    on_synced(offset)      the log is on disk up to this offset
    take_ready()           after every call; act on it before the next one

There is no clock, file, socket or randomness inside: equal calls give equal results.
"""

from collections.abc import Callable
from typing import Any

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.raft.config import RaftConfig
from ottla.raft.elections import Elections
from ottla.raft.following import Following
from ottla.raft.leadership import Leadership
from ottla.raft.log import OffsetAndEpoch, ReplicatedLog
from ottla.raft.messages import (
    NOBODY,
    AddRaftVoterRequest,
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
    Response,
    UpdateRaftVoterRequest,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.quorum import Identity, Quorum, Random
from ottla.raft.quorum_state import QuorumState
from ottla.raft.ready import Ready
from ottla.raft.states import State
from ottla.raft.voter_changes import VoterChanges
from ottla.raft.voters import Endpoint, VoterHistory, VoterSet


class RaftNode:
    """`voters` contains the voter sets of the latest snapshot and of the log after it.

    Everything before `committed_offset` is known to be committed and is in the log.
    """

    def __init__(
        self,
        *,
        identity: Identity,
        config: RaftConfig,
        log: ReplicatedLog,
        voters: VoterHistory,
        quorum_state: QuorumState,
        random: Random,
        now_ms: int,
        committed_offset: int = 0,
    ) -> None:
        self._quorum = Quorum(
            identity=identity,
            config=config,
            log=log,
            voters=voters,
            saved=quorum_state,
            random=random,
            now_ms=now_ms,
            committed_offset=committed_offset,
        )
        self._leadership = Leadership(self._quorum)
        self._following = Following(self._quorum)
        self._elections = Elections(self._quorum, self._leadership)
        self._voter_changes = VoterChanges(self._quorum, self._leadership)
        self._requests: dict[type, Callable[[Message, Any], Response | None]] = {
            VoteRequest: self._elections.handle_vote,
            BeginQuorumEpochRequest: self._following.handle_begin_epoch,
            EndQuorumEpochRequest: self._elections.handle_end_epoch,
            FetchRequest: self._leadership.handle_fetch,
            FetchSnapshotRequest: self._leadership.handle_fetch_snapshot,
            AddRaftVoterRequest: self._voter_changes.handle_add,
            RemoveRaftVoterRequest: self._voter_changes.handle_remove,
            UpdateRaftVoterRequest: self._voter_changes.handle_update,
        }
        self._responses: dict[type, Callable[[Message, object, Any], None]] = {
            VoteResponse: self._elections.on_vote_response,
            BeginQuorumEpochResponse: self._leadership.on_begin_epoch_response,
            EndQuorumEpochResponse: self._elections.on_end_epoch_response,
            FetchResponse: self._following.on_fetch_response,
            FetchSnapshotResponse: self._following.on_fetch_snapshot_response,
        }

    # Accessors.

    @property
    def state(self) -> State:
        """For inspection."""
        return self._quorum.state

    @property
    def is_voter(self) -> bool:
        return self._quorum.is_voter

    @property
    def voters(self) -> VoterHistory:
        """For inspection; a snapshot begins with `voters.at(its offset)`."""
        return self._quorum.voters

    @property
    def high_watermark(self) -> int:
        return self._quorum.high_watermark

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        return self._quorum.endpoints_of(node_id)

    @property
    def next_deadline_ms(self) -> int | None:
        """When to call `tick` at the latest; changes with every call."""
        deadlines = [
            *self._quorum.requests.deadlines_ms(),
            *self._leadership.deadlines_ms(),
            *(
                deadline
                for deadline in (
                    self._elections.deadline_ms(),
                    self._following.deadline_ms(),
                    self._voter_changes.deadline_ms(),
                )
                if deadline is not None
            ),
        ]
        return min(deadlines, default=None)

    # Calls.

    def tick(self, now_ms: int) -> None:
        self._quorum.log.settle()
        self._quorum.now_ms = max(now_ms, self._quorum.now_ms)
        self._quorum.requests.expire(self._quorum.now_ms)
        self._elections.tick()
        self._leadership.tick()
        self._go_on()

    def step(self, message: Message) -> None:
        """Ignores or rejects whatever does not fit the state."""
        quorum = self._quorum
        quorum.log.settle()
        body: Any = message.body
        handle = self._requests.get(type(body))
        if handle is None:
            self._on_response(message, body)
        elif body.cluster_id not in (None, quorum.identity.cluster_id):
            quorum.reply(message, quorum.answer(body, ErrorCode.inconsistent_cluster_id))
        else:
            try:
                response = handle(message, body)
            except ApiError as error:
                response = quorum.answer(body, error.code, error.message)
            if response is not None:
                quorum.reply(message, response)
        self._go_on()

    def append(self, batch: bytearray) -> int:
        """Append a batch as the leader; returns the offset after it. ApiError unless it leads."""
        self._quorum.log.settle()
        if self._leadership.state is None:
            raise ApiError(ErrorCode.not_leader_or_follower, "another node leads the quorum")
        end_offset = self._leadership.append(batch)
        self._go_on()
        return end_offset

    def resign(self) -> None:
        """Stop leading, for example before a shutdown; does nothing if it does not lead."""
        self._quorum.log.settle()
        if self._leadership.state is not None:
            self._leadership.resign("it was told to")
        self._go_on()

    def on_synced(self, offset: int) -> None:
        """Everything before the offset survives a crash.

        Only a sync that began after the last truncation counts: an earlier one may have synced what
        was then truncated.
        """
        quorum = self._quorum
        quorum.log.settle()
        synced_offset = min(offset, quorum.log.end_offset)
        quorum.synced_offset = max(quorum.synced_offset, synced_offset)
        self._go_on()

    def on_snapshot_installed(self, snapshot_id: OffsetAndEpoch, voters: VoterSet) -> None:
        """The snapshot replaces the log; `voters` is its voter set."""
        self._following.on_snapshot_installed(snapshot_id, voters)
        self._quorum.log.settle()
        self._go_on()

    def on_request_failed(
        self, destination: int, correlation_id: int, *, refused: bool = False
    ) -> None:
        """No response will come; without this call the request times out.

        `refused`: nothing listens at the address, so the replica's process has ended.
        """
        quorum = self._quorum
        quorum.log.settle()
        if quorum.requests.take(destination, correlation_id) is not None:
            quorum.requests.back_off(destination, quorum.now_ms)
            if refused:
                self._elections.on_ended(destination)
        self._go_on()

    def take_ready(self) -> Ready:
        ready, self._quorum.ready = self._quorum.ready, Ready()
        return ready

    def _on_response(self, message: Message, response: Any) -> None:
        quorum = self._quorum
        request = quorum.requests.take(message.source, message.correlation_id)
        handle = self._responses.get(type(response))
        if request is None or handle is None:
            return
        epoch = quorum.epoch
        # A voter that grants a vote no longer follows the leader that it names.
        granted = isinstance(response, VoteResponse) and response.vote_granted
        leader_id = NOBODY if granted else response.leader_id
        quorum.learn(leader_id, response.leader_epoch, response.node_endpoints)
        if quorum.epoch == epoch:
            handle(message, request, response)

    def _go_on(self) -> None:
        """Do whatever the call has made possible."""
        self._leadership.advance_high_watermark()
        self._voter_changes.advance()
        self._leadership.answer_parked()
        self._elections.send_due()
        self._leadership.send_due()
        self._following.send_due()
