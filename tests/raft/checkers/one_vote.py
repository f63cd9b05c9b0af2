"""A node gives one vote per epoch, even across restarts."""

from typing import TYPE_CHECKING

from tests.raft.violation import Violation

from ottla.raft.messages import VoteRequest, VoteResponse
from ottla.raft.ready import Ready
from ottla.raft.states import Role

if TYPE_CHECKING:
    from tests.raft.replica import Replica


class OneVote:
    def __init__(self) -> None:
        self._votes: dict[tuple[int, int], int] = {}  # Keyed by voter and epoch.

    def check(self, replica: "Replica", ready: Ready) -> None:
        change = ready.role_change
        if change is not None and change.role is Role.CANDIDATE:
            self._vote(replica, change.epoch, replica.key.id)
        asked = replica.stepping.body if replica.stepping else None
        if isinstance(asked, VoteRequest) and not asked.pre_vote:
            for message in ready.messages:
                if isinstance(message.body, VoteResponse) and message.body.vote_granted:
                    self._vote(replica, asked.replica_epoch, asked.replica.id)

    def _vote(self, replica: "Replica", epoch: int, candidate: int) -> None:
        first = self._votes.setdefault((replica.key.id, epoch), candidate)
        if first != candidate:
            raise Violation(f"{replica} votes for {first} and {candidate} in epoch {epoch}")
