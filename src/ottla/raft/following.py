"""The follower's part: fetching records and snapshots, truncating what the leader does not have.

A fetch says that everything before its offset is on disk here, so nothing new is fetched while an
append is not synced yet. If the disk is slow, a fetch from the end of the synced log, whose
response is empty, shows each side that the other is alive. Only one request is in flight at a time.
"""

from ottla.protocol.errors import ErrorCode
from ottla.raft.control_records import voters_in
from ottla.raft.divergence import truncation_offset
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Message,
    ReplicaRequest,
    Response,
)
from ottla.raft.quorum import Quorum
from ottla.raft.ready import SnapshotChunk
from ottla.raft.states import Download, Follower, Prospective, Unattached
from ottla.raft.voters import VoterSet
from ottla.records.batch import iterate_headers, validate_checksum
from ottla.records.errors import RecordError


class Following:
    def __init__(self, quorum: Quorum) -> None:
        self._quorum = quorum

    # Requests.

    def send_due(self) -> None:
        quorum = self._quorum
        state = quorum.state
        if isinstance(state, Follower):
            if not quorum.requests.can_send(state.leader_id, quorum.now_ms):
                return
            if not self._waits_for_disk:
                quorum.request(state.leader_id, self._next_request(state))
            elif quorum.now_ms >= state.sign_of_life_ms:
                quorum.request(state.leader_id, self._sign_of_life())
        elif isinstance(state, Unattached) and not self._waits_for_disk:
            self._look_for_leader()

    def deadline_ms(self) -> int | None:
        state, quorum = self._quorum.state, self._quorum
        if (
            isinstance(state, Follower)
            and self._waits_for_disk
            and quorum.requests.can_send(state.leader_id, quorum.now_ms)
        ):
            return state.sign_of_life_ms
        return None

    @property
    def _waits_for_disk(self) -> bool:
        quorum = self._quorum
        return quorum.installing is not None or quorum.synced_offset < quorum.log.end_offset

    def _next_request(self, state: Follower) -> ReplicaRequest:
        quorum = self._quorum
        if state.download is None:
            return self._fetch_request(quorum.config.fetch_max_wait_ms)
        return FetchSnapshotRequest(
            cluster_id=quorum.identity.cluster_id,
            replica=quorum.local,
            current_leader_epoch=state.epoch,
            snapshot_id=state.download.snapshot_id,
            position=state.download.position,
            max_bytes=quorum.config.snapshot_chunk_bytes_max,
        )

    def _sign_of_life(self) -> FetchRequest:
        """It requests no bytes, which identifies its response."""
        quorum = self._quorum
        offset = quorum.synced_offset
        fetch = self._fetch_request(max_wait_ms=0)
        epoch = quorum.log.epoch_before(offset)
        return fetch._replace(fetch_offset=offset, last_fetched_epoch=epoch, max_bytes=0)

    def _fetch_request(self, max_wait_ms: int) -> FetchRequest:
        quorum = self._quorum
        return FetchRequest(
            cluster_id=quorum.identity.cluster_id,
            replica=quorum.local,
            current_leader_epoch=quorum.epoch,
            fetch_offset=quorum.log.end_offset,
            last_fetched_epoch=quorum.log.last_epoch,
            high_watermark=quorum.high_watermark,
            max_wait_ms=max_wait_ms,
            max_bytes=quorum.config.fetch_bytes_max,
        )

    def _look_for_leader(self) -> None:
        """Any response to a fetch names the leader."""
        quorum = self._quorum
        if not quorum.requests.is_idle:
            return
        voters = quorum.voters.latest.others(quorum.local.id)
        peers = [*(voter.id for voter in voters), *quorum.identity.bootstrap]
        if peers:
            peer = peers[quorum.random(len(peers))]
            quorum.request(peer, self._fetch_request(max_wait_ms=0))

    # A new leader.

    def handle_begin_epoch(self, _: Message, request: BeginQuorumEpochRequest) -> Response:
        quorum = self._quorum
        if request.leader_epoch < quorum.epoch:
            return quorum.answer(request, ErrorCode.fenced_leader_epoch)
        if not quorum.is_asked(request.voter):
            return quorum.answer(request, ErrorCode.invalid_voter_key)
        leader_id, epoch = request.leader_id, request.leader_epoch
        state = quorum.state
        if isinstance(state, Prospective) and (state.epoch, state.leader_id) == (epoch, leader_id):
            quorum.become_follower(epoch, leader_id, request.leader_endpoints)
        else:
            quorum.learn(leader_id, epoch, request.leader_endpoints)
        return quorum.answer(request)

    # Records.

    def on_fetch_response(self, message: Message, request: object, response: FetchResponse) -> None:
        quorum = self._quorum
        assert isinstance(request, FetchRequest)
        state = self._leader_answered(message, request.current_leader_epoch, response)
        if state is None or request.max_bytes == 0:
            return
        assert request.fetch_offset == quorum.log.end_offset
        if response.diverging_epoch is not None:
            self._truncate(response.diverging_epoch)
        elif response.snapshot_id is not None:
            state.download = Download(response.snapshot_id)
        elif isinstance(response.records, bytes):
            self._append(state, response.records)
            high_watermark = min(response.high_watermark, quorum.log.end_offset)
            if high_watermark > quorum.high_watermark:
                quorum.commit_to(high_watermark)

    def _leader_answered(
        self, message: Message, epoch: int, response: FetchResponse | FetchSnapshotResponse
    ) -> Follower | None:
        """The state, if this is a valid response from the leader being followed."""
        quorum = self._quorum
        state = quorum.state
        if (
            response.error_code is not ErrorCode.none
            or not isinstance(state, Follower)
            or message.source != state.leader_id
            or not epoch == response.leader_epoch == state.epoch
        ):
            quorum.requests.back_off(message.source, quorum.now_ms)
            return None
        state.has_fetched, state.has_ended = True, False
        state.fetch_deadline_ms = quorum.now_ms + quorum.config.fetch_timeout_ms
        state.sign_of_life_ms = quorum.now_ms + quorum.config.fetch_max_wait_ms
        return state

    def _truncate(self, diverging: OffsetAndEpoch) -> None:
        quorum = self._quorum
        offset = truncation_offset(quorum.log, diverging)
        assert offset >= quorum.high_watermark, "the leader lacks what is committed"
        self.truncate_to(offset)

    def truncate_to(self, offset: int) -> None:
        quorum = self._quorum
        quorum.log.truncate_to(offset)
        quorum.voters.truncate_to(offset)
        quorum.synced_offset = min(quorum.synced_offset, offset)
        quorum.ready.truncate_to = offset

    def _append(self, state: Follower, records: bytes) -> None:
        """Append whole batches that continue the log; the rest is dropped, and fetched again."""
        quorum = self._quorum
        try:
            for position, header in iterate_headers(records):
                epoch = header.partition_leader_epoch
                validate_checksum(records, position, header)
                if header.base_offset != quorum.log.end_offset or not (
                    quorum.log.last_epoch <= epoch <= state.epoch
                ):
                    break
                voters = voters_in(records, position)
                quorum.log.append(header.next_offset, epoch)
                quorum.ready.appends.append(records[position : position + header.size])
                for offset, voter_set in voters:
                    quorum.voters.add(offset, voter_set)
        except RecordError:
            quorum.requests.back_off(state.leader_id, quorum.now_ms)

    # Snapshots.

    def on_fetch_snapshot_response(
        self, message: Message, request: object, response: FetchSnapshotResponse
    ) -> None:
        quorum = self._quorum
        assert isinstance(request, FetchSnapshotRequest)
        state = self._leader_answered(message, request.current_leader_epoch, response)
        if state is None:
            if isinstance(quorum.state, Follower):
                quorum.state.download = None  # It may be gone; a fetch tells which one to take.
            return
        download, data = state.download, response.unaligned_records
        assert download is not None
        if (
            not isinstance(data, bytes)
            or not data
            or response.snapshot_id != download.snapshot_id
            or response.position != download.position
        ):
            state.download = None
            quorum.requests.back_off(message.source, quorum.now_ms)
            return
        quorum.ready.snapshot_chunk = SnapshotChunk(download.snapshot_id, download.position, data)
        download.position += len(data)
        if download.position >= response.size:
            state.download = None
            quorum.installing = download.snapshot_id
            quorum.ready.install_snapshot = download.snapshot_id

    def on_snapshot_installed(self, snapshot_id: OffsetAndEpoch, voters: VoterSet) -> None:
        quorum = self._quorum
        assert snapshot_id == quorum.installing
        assert snapshot_id.offset >= quorum.high_watermark, "a snapshot undoes what is committed"
        quorum.installing = None
        quorum.log.restart_at(snapshot_id)
        quorum.synced_offset = snapshot_id.offset
        quorum.voters.start_from_snapshot(snapshot_id.offset, voters)
        if snapshot_id.offset > quorum.high_watermark:
            quorum.commit_to(snapshot_id.offset)
        state = quorum.state
        if isinstance(state, Follower):
            state.fetch_deadline_ms = quorum.now_ms + quorum.config.fetch_timeout_ms
