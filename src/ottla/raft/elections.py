"""Elections: requesting votes, granting them, winning and losing.

A replica first asks whether it would win (pre-vote), and only then raises the epoch. A voter grants
at most one vote per epoch, and the vote is in the quorum state, on disk, before the response
leaves.
"""

from ottla.protocol.errors import ErrorCode
from ottla.raft.leadership import Leadership
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.messages import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    Message,
    Response,
    VoteRequest,
    VoteResponse,
)
from ottla.raft.quorum import Quorum
from ottla.raft.states import Candidate, Follower, Prospective, Resigned, Unattached
from ottla.raft.voters import ReplicaKey
from ottla.raft.votes import grants_pre_vote, grants_vote, is_up_to_date


class Elections:
    def __init__(self, quorum: Quorum, leadership: Leadership) -> None:
        self._quorum = quorum
        self._leadership = leadership

    # Time.

    def tick(self) -> None:
        quorum = self._quorum
        state, now_ms = quorum.state, quorum.now_ms
        if isinstance(state, Resigned):
            if now_ms >= state.election_deadline_ms:
                quorum.become_unattached(state.epoch + 1)
        elif isinstance(state, Follower):
            if now_ms >= state.fetch_deadline_ms and quorum.installing is None:
                self._on_fetch_timeout(state)
        elif isinstance(state, Unattached):
            if now_ms >= state.election_deadline_ms and self._may_stand():
                quorum.reason = quorum.reason or "no leader was found"
                self._stand()
        elif isinstance(state, Prospective):
            if now_ms >= state.election_deadline_ms:
                self._step_back(state)
        elif isinstance(state, Candidate) and now_ms >= state.election_deadline_ms:
            state.elections_lost += not state.backs_off
            self._stand()

    def deadline_ms(self) -> int | None:
        state = self._quorum.state
        if isinstance(state, Follower):
            return None if self._quorum.installing else state.fetch_deadline_ms
        if isinstance(state, Unattached) and not self._may_stand():
            return None
        if isinstance(state, Unattached | Prospective | Candidate | Resigned):
            return state.election_deadline_ms
        return None

    def _on_fetch_timeout(self, state: Follower) -> None:
        if not state.has_ended:
            timeout_ms = self._quorum.config.fetch_timeout_ms
            self._quorum.reason = f"node {state.leader_id} did not answer for {timeout_ms} ms"
        if self._quorum.can_stand:
            self._stand()
        else:
            self._quorum.become_unattached(state.epoch)

    def _may_stand(self) -> bool:
        return self._quorum.can_stand and self._quorum.installing is None

    def _stand(self) -> None:
        self._quorum.become_prospective()
        self._on_answer()

    def _step_back(self, state: Prospective) -> None:
        if state.leader_id is None:
            self._quorum.become_unattached(state.epoch)
        else:
            self._quorum.become_follower(state.epoch, state.leader_id, state.leader_endpoints)

    # Requesting votes.

    def send_due(self) -> None:
        quorum = self._quorum
        state = quorum.state
        if isinstance(state, Prospective) or (isinstance(state, Candidate) and not state.backs_off):
            for voter in state.ballot.voters.others(quorum.local.id):
                if not state.ballot.has_answered(voter.id) and quorum.requests.can_send(
                    voter.id, quorum.now_ms
                ):
                    quorum.request(voter.id, self._vote_request(voter, state))
        elif isinstance(state, Resigned):
            self._send_end_epoch(state)

    def _vote_request(self, voter: ReplicaKey, state: Prospective | Candidate) -> VoteRequest:
        quorum = self._quorum
        return VoteRequest(
            cluster_id=quorum.identity.cluster_id,
            voter=voter,
            replica=quorum.local,
            replica_epoch=state.epoch,
            last_offset_epoch=quorum.log.last_epoch,
            last_offset=quorum.log.end_offset,
            pre_vote=isinstance(state, Prospective),
        )

    def on_vote_response(self, message: Message, request: object, response: VoteResponse) -> None:
        """Call after the response's epoch was learned; the state is still that of the request."""
        quorum = self._quorum
        state = quorum.state
        assert isinstance(request, VoteRequest)
        if response.error_code is not ErrorCode.none:
            quorum.requests.back_off(message.source, quorum.now_ms)
            return
        if isinstance(state, Prospective | Candidate):
            assert request.pre_vote == isinstance(state, Prospective)
            assert request.replica_epoch == state.epoch
            state.ballot.record(message.source, response.vote_granted)
            self._on_answer()

    def _on_answer(self) -> None:
        quorum = self._quorum
        state = quorum.state
        if isinstance(state, Prospective):
            if state.ballot.is_won:
                quorum.become_candidate()
                self._on_answer()
            elif state.ballot.is_lost:
                self._step_back(state)
        elif isinstance(state, Candidate):
            if state.ballot.is_won:
                self._leadership.begin(state.ballot)
            elif state.ballot.is_lost and not state.backs_off:
                self._back_off(state)

    def _back_off(self, state: Candidate) -> None:
        config = self._quorum.config
        state.elections_lost += 1
        longest_ms = config.retry_backoff_ms << min(state.elections_lost, 16)
        wait_ms = 1 + self._quorum.random(min(longest_ms, config.election_backoff_max_ms))
        state.election_deadline_ms = self._quorum.now_ms + wait_ms
        state.backs_off = True

    # Granting votes.

    def handle_vote(self, _: Message, request: VoteRequest) -> Response:
        quorum = self._quorum
        if not quorum.is_asked(request.voter):
            return quorum.answer(request, ErrorCode.invalid_voter_key)
        if request.replica_epoch < quorum.epoch:
            return quorum.answer(request, ErrorCode.fenced_leader_epoch)
        if request.replica_epoch > quorum.epoch:
            quorum.reason = f"node {request.replica.id} stands in epoch {request.replica_epoch}"
            quorum.become_unattached(request.replica_epoch)
        granted = self._grant(request)
        return VoteResponse(
            error_code=ErrorCode.none,
            leader_id=quorum.leader_id_on_wire,
            leader_epoch=quorum.epoch,
            vote_granted=granted,
            node_endpoints=quorum.endpoints_of(quorum.leader_id_on_wire),
        )

    def _grant(self, request: VoteRequest) -> bool:
        quorum = self._quorum
        end = OffsetAndEpoch(request.last_offset, request.last_offset_epoch)
        up_to_date = is_up_to_date(end, quorum.log.end)
        if request.pre_vote:
            return grants_pre_vote(quorum.state, up_to_date=up_to_date)
        granted = grants_vote(quorum.state, request.replica, up_to_date=up_to_date)
        if granted:
            quorum.vote_for(request.replica)
        return granted

    # The end of an epoch.

    def on_ended(self, replica_id: int) -> None:
        """The replica's process has ended: it neither leads nor votes any more.

        It may come back, and then votes in another election.
        """
        state = self._quorum.state
        if isinstance(state, Follower) and state.leader_id == replica_id:
            if not state.has_ended:
                self._on_leader_ended(state)
        elif isinstance(state, Prospective | Candidate):
            state.ballot.record(replica_id, granted=False)
            self._on_answer()

    def _on_leader_ended(self, state: Follower) -> None:
        """The remaining voters stand in turn. One that failed before waits longer each time."""
        quorum, config = self._quorum, self._quorum.config
        quorum.reason = f"the process of node {state.leader_id} has ended"
        if quorum.ended_epoch != state.epoch:
            quorum.ended_epoch, quorum.ended_count = state.epoch, 0
        others = [voter.id for voter in quorum.voters.latest.others(state.leader_id)]
        turn = others.index(quorum.local.id) if quorum.local.id in others else 0
        longest_ms = config.retry_backoff_ms << min(quorum.ended_count, 16)
        wait_ms = quorum.random(longest_ms) if quorum.ended_count else 0
        quorum.ended_count += 1
        state.has_fetched, state.has_ended = False, True
        state.fetch_deadline_ms = quorum.now_ms + min(
            wait_ms + turn * 2 * config.retry_backoff_ms, config.election_backoff_max_ms
        )

    def _send_end_epoch(self, state: Resigned) -> None:
        quorum = self._quorum
        for voter in quorum.voters.latest.others(quorum.local.id):
            if voter.id not in state.acknowledged and quorum.requests.can_send(
                voter.id, quorum.now_ms
            ):
                request = EndQuorumEpochRequest(
                    cluster_id=quorum.identity.cluster_id,
                    leader_id=quorum.local.id,
                    leader_epoch=state.epoch,
                    preferred_candidates=state.preferred_candidates,
                    leader_endpoints=quorum.identity.endpoints,
                )
                quorum.request(voter.id, request)

    def on_end_epoch_response(
        self, message: Message, _: object, response: EndQuorumEpochResponse
    ) -> None:
        state = self._quorum.state
        if response.error_code is ErrorCode.none and isinstance(state, Resigned):
            state.acknowledged.add(message.source)
        else:
            self._quorum.requests.back_off(message.source, self._quorum.now_ms)

    def handle_end_epoch(self, _: Message, request: EndQuorumEpochRequest) -> Response:
        """The leader's preferred successor stands at once, the others slightly later."""
        quorum = self._quorum
        if request.leader_epoch < quorum.epoch:
            return quorum.answer(request, ErrorCode.fenced_leader_epoch)
        quorum.learn(request.leader_id, request.leader_epoch, request.leader_endpoints)
        state = quorum.state
        if isinstance(state, Follower) and state.leader_id == request.leader_id:
            state.has_fetched = False
            state.has_ended = True
            quorum.reason = f"node {state.leader_id} has given up epoch {state.epoch}"
            state.fetch_deadline_ms = quorum.now_ms + self._turn_ms(request)
        return quorum.answer(request)

    def _turn_ms(self, request: EndQuorumEpochRequest) -> int:
        candidates = request.preferred_candidates
        turn = candidates.index(self._quorum.local) if self._quorum.local in candidates else 0
        if turn == 0:
            return 0
        config = self._quorum.config
        return min(config.retry_backoff_ms << min(turn, 16), config.election_backoff_max_ms)
