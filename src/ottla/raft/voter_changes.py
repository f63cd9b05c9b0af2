"""Changes of the voter set, one at a time (KIP-853).

A change is a VotersRecord, which takes effect as soon as it is in the leader's log, and is answered
once committed. The next change waits for that, so that any majority before and any after have a
voter in common. A leader that removes itself leads until the record is committed, without counting
itself.

Omitted: Kafka asks the new voter for its versions before it adds it; here the driver may.
"""

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.leadership import Leadership
from ottla.raft.messages import (
    AddRaftVoterRequest,
    Message,
    RemoveRaftVoterRequest,
    Response,
    UpdateRaftVoterRequest,
    VoterChangeRequest,
)
from ottla.raft.quorum import Quorum
from ottla.raft.states import Leader
from ottla.raft.voters import KRAFT_VERSION_MAX, Voter, VoterSet


@dataclass(slots=True)
class _Change:
    message: Message
    request: VoterChangeRequest
    epoch: int
    deadline_ms: int | None
    end_offset: int | None = None  # After its record; None while the new voter catches up.


class VoterChanges:
    def __init__(self, quorum: Quorum, leadership: Leadership) -> None:
        self._quorum = quorum
        self._leadership = leadership
        self._change: _Change | None = None

    def deadline_ms(self) -> int | None:
        return self._change.deadline_ms if self._change else None

    # Requests.

    def handle_add(self, message: Message, request: AddRaftVoterRequest) -> Response | None:
        self._validate_ready()
        if self._quorum.voters.latest.voter(request.voter.id) is not None:
            raise ApiError(
                ErrorCode.duplicate_voter,
                f"node {request.voter.id} is a voter; remove it before it is added anew",
            )
        deadline_ms = self._quorum.now_ms + request.timeout_ms
        self._change = _Change(message, request, self._quorum.epoch, deadline_ms)
        return None

    def handle_remove(self, message: Message, request: RemoveRaftVoterRequest) -> Response | None:
        self._validate_ready()
        voters = self._quorum.voters.latest
        if request.voter not in voters:
            raise ApiError(ErrorCode.voter_not_found, f"node {request.voter.id} is not a voter")
        if len(voters) == 1:
            raise ApiError(ErrorCode.invalid_request, "the last voter cannot be removed")
        self._begin(message, request, voters.without_voter(request.voter))
        return None

    def handle_update(self, message: Message, request: UpdateRaftVoterRequest) -> Response | None:
        code = self._leadership.refusal(request.current_leader_epoch)
        if code is not None:
            raise ApiError(code)
        self._validate_ready()
        voters = self._quorum.voters.latest
        if request.voter not in voters:
            raise ApiError(ErrorCode.voter_not_found)
        if not request.min_supported_version <= KRAFT_VERSION_MAX <= request.max_supported_version:
            raise ApiError(ErrorCode.invalid_request)
        updated = Voter(
            request.voter,
            request.listeners,
            request.min_supported_version,
            request.max_supported_version,
        )
        if voters.voter(request.voter.id) == updated:
            return self._quorum.answer(request)
        self._begin(message, request, voters.with_voter(updated))
        return None

    def _begin(self, message: Message, request: VoterChangeRequest, voters: VoterSet) -> None:
        end_offset = self._leadership.append_voters(voters)
        deadline_ms = self._quorum.now_ms + self._quorum.config.request_timeout_ms
        self._change = _Change(message, request, self._quorum.epoch, deadline_ms, end_offset)

    def _validate_ready(self) -> None:
        """The voters can be changed now."""
        leadership, state = self._leadership, self._leadership.state
        if state is None:
            raise ApiError(ErrorCode.not_leader_or_follower, "another node leads the quorum")
        if not leadership.has_committed(state.epoch_start_offset):
            raise ApiError(ErrorCode.request_timed_out, "the leader is new; try again")
        latest_offset = self._quorum.voters.latest_offset
        if self._change is not None or not leadership.has_committed(latest_offset):
            raise ApiError(ErrorCode.request_timed_out, "another change of the voters is under way")

    # Progress.

    def advance(self) -> None:
        """Add a voter that has caught up; answer what is committed, lost or overdue."""
        state, change = self._leadership.state, self._change
        if change is not None:
            if state is None or state.epoch != change.epoch:
                self._finish(change, ErrorCode.not_leader_or_follower, "leadership was lost")
            else:
                self._advance(state, change)
        if state is not None and self._is_removed():
            self._leadership.resign("it is no voter any more")

    def _advance(self, state: Leader, change: _Change) -> None:
        request = change.request
        if change.end_offset is None:
            assert isinstance(request, AddRaftVoterRequest)
            progress = state.progress.get(request.voter)
            if progress is not None and progress.caught_up:
                added = Voter(request.voter, request.listeners)
                voters = self._quorum.voters.latest.with_voter(added)
                change.end_offset = self._leadership.append_voters(voters)
                if not request.ack_when_committed:
                    self._finish(change)
                    return
        if change.end_offset is not None and change.end_offset <= self._quorum.high_watermark:
            self._finish(change)
        elif change.deadline_ms is not None and self._quorum.now_ms >= change.deadline_ms:
            message = "it is not committed yet"
            if change.end_offset is None:
                message = "the new voter has not caught up"
            self._finish(change, ErrorCode.request_timed_out, message)

    def _finish(
        self, change: _Change, code: ErrorCode = ErrorCode.none, message: str | None = None
    ) -> None:
        self._change = None
        self._quorum.reply(change.message, self._quorum.answer(change.request, code, message))

    def _is_removed(self) -> bool:
        quorum = self._quorum
        return not quorum.is_voter and self._leadership.has_committed(quorum.voters.latest_offset)
