"""Whether a voter grants its vote."""

from ottla.raft.log import OffsetAndEpoch
from ottla.raft.states import Candidate, Follower, Leader, Resigned, State
from ottla.raft.voters import ReplicaKey


def is_up_to_date(candidate: OffsetAndEpoch, local: OffsetAndEpoch) -> bool:
    """Whether the candidate's log has everything in this one that may be committed."""
    return (candidate.epoch, candidate.offset) >= (local.epoch, local.offset)


def grants_pre_vote(state: State, *, up_to_date: bool) -> bool:
    """Whether this voter would vote in a real election. A promise of nothing (KIP-996)."""
    if isinstance(state, Leader):
        return False
    if isinstance(state, Follower) and state.has_fetched:
        return False  # The leader is alive.
    return up_to_date


def grants_vote(state: State, candidate: ReplicaKey, *, up_to_date: bool) -> bool:
    """The state must belong to the epoch of the election."""
    if isinstance(state, Candidate | Follower | Leader | Resigned) or state.leader_id is not None:
        return False
    if state.voted is not None:
        return state.voted == candidate
    return up_to_date
