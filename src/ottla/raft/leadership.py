"""The leader's part: first record of the epoch, fetch responses, high watermark, resigning.

A leader commits by counting replicas only from its epoch's LeaderChange record on; what older
epochs left is committed along with it. It resigns when no majority has fetched for a while.
"""

from ottla.protocol.errors import ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.control_records import (
    control_batch,
    kraft_version,
    leader_change,
    voters_in,
    voters_record,
)
from ottla.raft.divergence import LogComparison, compare_end
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    LogRange,
    Message,
    Response,
    SnapshotRange,
)
from ottla.raft.quorum import Quorum
from ottla.raft.states import Ballot, Leader, Progress
from ottla.raft.voters import ReplicaKey, VoterSet
from ottla.records.batch import assign, read_header

_OBSERVER_KEPT_MS = 300_000  # An observer that has not fetched for this long is forgotten.


@dataclass(frozen=True, slots=True)
class _Parked:
    message: Message
    request: FetchRequest
    deadline_ms: int


class Leadership:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum
        self._parked: dict[ReplicaKey, _Parked] = {}  # A later fetch replaces the earlier one.

    @property
    def state(self) -> Leader | None:
        state = self._quorum.state
        return state if isinstance(state, Leader) else None

    # The epoch.

    def begin(self, ballot: Ballot) -> None:
        quorum = self._quorum
        voters = quorum.voters.latest
        quorum.become_leader()
        records = [leader_change(quorum.local.id, voters, ballot.granted)]
        if quorum.voters.latest_offset is None:
            records += [kraft_version(), voters_record(voters)]
        self.append(control_batch(records, quorum.now_ms))

    def append(self, batch: bytearray) -> int:
        """Returns the offset after the batch, which gets its offset and epoch here."""
        quorum = self._quorum
        assert self.state is not None
        assign(batch, 0, quorum.log.end_offset, quorum.epoch)
        end_offset = read_header(batch).next_offset
        for offset, voters in voters_in(batch):
            quorum.voters.add(offset, voters)
        quorum.log.append(end_offset, quorum.epoch)
        quorum.ready.appends.append(batch)
        return end_offset

    def append_voters(self, voters: VoterSet) -> int:
        """A new voter has not been heard from, so the time to hear from a majority starts over."""
        state = self.state
        assert state is not None
        self._await_majority(state)
        return self.append(control_batch([voters_record(voters)], self._quorum.now_ms))

    def resign(self, reason: str) -> None:
        state = self.state
        assert state is not None
        self._quorum.reason = reason
        others = self._quorum.voters.latest.others(self._quorum.local.id)
        others.sort(key=lambda voter: -self._fetch_offset(state, voter))
        self._quorum.become_resigned(tuple(others))

    # Time.

    def tick(self) -> None:
        state, now_ms = self.state, self._quorum.now_ms
        if state is None:
            return
        config = self._quorum.config
        if now_ms >= state.check_quorum_deadline_ms:
            if self._voters_to_hear(state) > 0:
                timeout_ms = config.check_quorum_timeout_ms
                self.resign(f"no majority of the voters has fetched for {timeout_ms} ms")
                return
            self._await_majority(state)
        if now_ms >= state.begin_epoch_deadline_ms:
            state.acknowledged.clear()
            state.begin_epoch_deadline_ms = now_ms + config.begin_epoch_interval_ms
            self._forget_observers(state)

    def deadlines_ms(self) -> list[int]:
        state = self.state
        if state is None:
            return []
        return [
            state.check_quorum_deadline_ms,
            state.begin_epoch_deadline_ms,
            *(parked.deadline_ms for parked in self._parked.values()),
        ]

    def _forget_observers(self, state: Leader) -> None:
        oldest_ms = self._quorum.now_ms - _OBSERVER_KEPT_MS
        voters = self._quorum.voters.latest
        for key, progress in list(state.progress.items()):
            if progress.last_fetch_ms < oldest_ms and key not in voters:
                del state.progress[key]

    def _voters_to_hear(self, state: Leader) -> int:
        """How many more must fetch for a majority that includes this node, if it votes."""
        voters = self._quorum.voters.latest
        heard = sum(key in voters for key in state.heard_from)
        return voters.majority - heard - (self._quorum.local in voters)

    def _hear(self, state: Leader, replica: ReplicaKey) -> None:
        if replica != self._quorum.local and replica in self._quorum.voters.latest:
            state.heard_from.add(replica)
            if self._voters_to_hear(state) <= 0:
                self._await_majority(state)

    def _await_majority(self, state: Leader) -> None:
        """Restart the deadline."""
        quorum = self._quorum
        state.heard_from.clear()
        state.check_quorum_deadline_ms = quorum.now_ms + quorum.config.check_quorum_timeout_ms

    # Contacting voters that do not fetch.

    def send_due(self) -> None:
        state, quorum = self.state, self._quorum
        if state is None:
            return
        for voter in quorum.voters.latest.others(quorum.local.id):
            if self._is_silent(state, voter) and quorum.requests.can_send(voter.id, quorum.now_ms):
                request = BeginQuorumEpochRequest(
                    cluster_id=quorum.identity.cluster_id,
                    voter=voter,
                    leader_id=quorum.local.id,
                    leader_epoch=state.epoch,
                    leader_endpoints=quorum.identity.endpoints,
                )
                quorum.request(voter.id, request)

    def _is_silent(self, state: Leader, voter: ReplicaKey) -> bool:
        if voter.id in state.acknowledged:
            return False
        progress = self._progress(state, voter)
        interval_ms = self._quorum.config.begin_epoch_interval_ms
        return progress is None or self._quorum.now_ms - progress.last_fetch_ms >= interval_ms

    def on_begin_epoch_response(
        self, message: Message, _: object, response: BeginQuorumEpochResponse
    ) -> None:
        state = self.state
        if response.error_code is ErrorCode.none and state is not None:
            state.acknowledged.add(message.source)
        else:
            self._quorum.requests.back_off(message.source, self._quorum.now_ms)

    # Fetches.

    def refusal(self, epoch: int) -> ErrorCode | None:
        """The error for a request that only the epoch's leader answers; None if this leads it."""
        if epoch < self._quorum.epoch:
            return ErrorCode.fenced_leader_epoch
        if epoch > self._quorum.epoch:
            return ErrorCode.unknown_leader_epoch
        return ErrorCode.not_leader_or_follower if self.state is None else None

    def handle_fetch(self, message: Message, request: FetchRequest) -> Response | None:
        quorum, state = self._quorum, self.state
        refusal = self.refusal(request.current_leader_epoch)
        if refusal is not None:
            return quorum.answer(request, refusal)
        assert state is not None
        self._hear(state, request.replica)
        end = OffsetAndEpoch(request.fetch_offset, request.last_fetched_epoch)
        comparison = compare_end(quorum.log, end)
        if comparison is LogComparison.BEFORE_SNAPSHOT:
            return self._answer(snapshot_id=quorum.log.latest_snapshot_id)
        if comparison is LogComparison.DIVERGING:
            common = quorum.log.end_offset_for_epoch(request.last_fetched_epoch)
            return self._answer(diverging_epoch=common)
        wait_ms = 0
        if request.replica.id >= 0:
            self._note_progress(state, request)
            wait_ms = request.max_wait_ms
        self._park(_Parked(message, request, quorum.now_ms + wait_ms))
        return None

    def _park(self, parked: _Parked) -> None:
        earlier = self._parked.pop(parked.request.replica, None)
        if earlier is not None:
            self._quorum.reply(earlier.message, self._answer())
        self._parked[parked.request.replica] = parked

    def answer_parked(self) -> None:
        """Answer fetches that have records or a higher high watermark to fetch, or are due."""
        quorum = self._quorum
        response: Response
        for key, parked in list(self._parked.items()):
            request = parked.request
            refusal = self.refusal(request.current_leader_epoch)
            if refusal is not None:
                response = quorum.answer(request, refusal)
            elif request.fetch_offset < quorum.log.end_offset:
                response = self._answer(
                    records=LogRange(request.fetch_offset, quorum.log.end_offset, request.max_bytes)
                )
            elif (
                request.high_watermark < quorum.high_watermark
                or quorum.now_ms >= parked.deadline_ms
            ):
                response = self._answer()
            else:
                continue
            del self._parked[key]
            quorum.reply(parked.message, response)

    def _answer(
        self,
        *,
        diverging_epoch: OffsetAndEpoch | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
        records: bytes | LogRange = b"",
    ) -> FetchResponse:
        quorum = self._quorum
        return FetchResponse(
            error_code=ErrorCode.none,
            leader_id=quorum.local.id,
            leader_epoch=quorum.epoch,
            high_watermark=quorum.high_watermark,
            log_start_offset=quorum.log.start_offset,
            diverging_epoch=diverging_epoch,
            snapshot_id=snapshot_id,
            records=records,
        )

    def handle_fetch_snapshot(self, _: Message, request: FetchSnapshotRequest) -> Response:
        quorum, state = self._quorum, self.state
        refusal = self.refusal(request.current_leader_epoch)
        if refusal is not None:
            return quorum.answer(request, refusal)
        assert state is not None
        self._hear(state, request.replica)
        size = quorum.log.snapshot_size(request.snapshot_id)
        if size is None:
            return quorum.answer(request, ErrorCode.snapshot_not_found)
        if not 0 <= request.position < size:
            return quorum.answer(request, ErrorCode.position_out_of_range)
        return FetchSnapshotResponse(
            error_code=ErrorCode.none,
            leader_id=quorum.local.id,
            leader_epoch=quorum.epoch,
            snapshot_id=request.snapshot_id,
            size=size,
            position=request.position,
            unaligned_records=SnapshotRange(
                request.snapshot_id, request.position, request.max_bytes
            ),
        )

    # Progress.

    def _note_progress(self, state: Leader, request: FetchRequest) -> None:
        quorum = self._quorum
        before = state.progress.get(request.replica)
        end_offset = quorum.log.end_offset
        caught_up = request.fetch_offset >= end_offset or (
            before is not None and request.fetch_offset >= before.end_offset_at_fetch
        )
        state.progress[request.replica] = Progress(
            request.fetch_offset, quorum.now_ms, end_offset, caught_up
        )

    def _progress(self, state: Leader, voter: ReplicaKey) -> Progress | None:
        if voter.directory_id is not None:
            return state.progress.get(voter)
        found = (entry for key, entry in state.progress.items() if key.id == voter.id)
        return next(found, None)

    def _fetch_offset(self, state: Leader, voter: ReplicaKey) -> int:
        if voter.id == self._quorum.local.id:
            return self._quorum.synced_offset
        progress = self._progress(state, voter)
        return -1 if progress is None else progress.fetch_offset

    def majority_offset(self, state: Leader) -> int:
        """Everything before it is on the disks of a majority of the voters."""
        offsets = sorted(
            self._fetch_offset(state, voter.key) for voter in self._quorum.voters.latest
        )
        return offsets[(len(offsets) - 1) // 2]

    def is_of_own_epoch(self, state: Leader, offset: int) -> bool:
        return offset > state.epoch_start_offset

    def advance_high_watermark(self) -> None:
        state, quorum = self.state, self._quorum
        if state is None:
            return
        offset = self.majority_offset(state)
        if offset > quorum.high_watermark and self.is_of_own_epoch(state, offset):
            quorum.commit_to(offset)

    def has_committed(self, offset: int | None) -> bool:
        """Whether a record at the offset is committed; None means that no record was needed."""
        return offset is None or offset < self._quorum.high_watermark
