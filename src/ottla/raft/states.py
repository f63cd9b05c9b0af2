"""The states of a replica in the quorum and every legal transition.

    UNATTACHED       knows an epoch and no leader to fetch from; may have voted
        -> UNATTACHED   learns of a higher epoch, or grants a vote
        -> PROSPECTIVE  the election timeout has passed
        -> FOLLOWER     learns who leads this epoch or a higher one
    PROSPECTIVE      asks whether it would be elected (pre-vote, KIP-996); its epoch stays
        -> PROSPECTIVE  grants a vote in its epoch
        -> CANDIDATE    a majority would vote for it
        -> UNATTACHED   learns of a higher epoch, or would lose, or got no answer in time
        -> FOLLOWER     learns who leads this epoch or a higher one; would lose or got no answer
                        and had a leader before
    CANDIDATE        has raised the epoch, voted for itself and asks for votes
        -> LEADER       a majority voted for it
        -> PROSPECTIVE  the election timeout has passed, or the election is lost and it has waited
        -> UNATTACHED   learns of a higher epoch
        -> FOLLOWER     learns who leads this epoch or a higher one
    LEADER           the only one of its epoch; never the same epoch again after a restart
        -> RESIGNED     no majority fetched in time, it was told to, or it is no voter any more
        -> UNATTACHED   learns of a higher epoch
        -> FOLLOWER     learns who leads a higher epoch
    FOLLOWER         fetches from the leader
        -> PROSPECTIVE  has not fetched for the fetch timeout, or the leader ends its epoch
        -> UNATTACHED   learns of a higher epoch; as an observer, has not fetched for that timeout
        -> FOLLOWER     learns who leads a higher epoch
    RESIGNED         led this epoch and tells the voters that it ends
        -> UNATTACHED   learns of a higher epoch, or the election timeout has passed: the next epoch
        -> FOLLOWER     learns who leads a higher epoch

An observer, which is not in the voter set, is UNATTACHED or FOLLOWER. A voter that was removed may
be in any state until it knows that its removal is committed.
"""

import enum
from dataclasses import field
from typing import ClassVar

from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import Endpoint, ReplicaKey, VoterSet


class Role(enum.Enum):
    UNATTACHED = "unattached"
    PROSPECTIVE = "prospective"
    CANDIDATE = "candidate"
    LEADER = "leader"
    FOLLOWER = "follower"
    RESIGNED = "resigned"


_NEXT = {
    Role.UNATTACHED: {Role.UNATTACHED, Role.PROSPECTIVE, Role.FOLLOWER},
    Role.PROSPECTIVE: {Role.PROSPECTIVE, Role.CANDIDATE, Role.UNATTACHED, Role.FOLLOWER},
    Role.CANDIDATE: {Role.LEADER, Role.PROSPECTIVE, Role.UNATTACHED, Role.FOLLOWER},
    Role.LEADER: {Role.RESIGNED, Role.UNATTACHED, Role.FOLLOWER},
    Role.FOLLOWER: {Role.PROSPECTIVE, Role.UNATTACHED, Role.FOLLOWER},
    Role.RESIGNED: {Role.UNATTACHED, Role.FOLLOWER},
}


def is_legal(before: Role, after: Role) -> bool:
    return after in _NEXT[before]


@dataclass(slots=True)
class Ballot:
    """The votes of one election. The voter set cannot change while it lasts."""

    voters: VoterSet
    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)

    def record(self, voter_id: int, granted: bool) -> None:
        """A voter's first answer counts."""
        if self.voters.voter(voter_id) is not None and not self.has_answered(voter_id):
            (self.granted if granted else self.rejected).add(voter_id)

    def has_answered(self, voter_id: int) -> bool:
        return voter_id in self.granted or voter_id in self.rejected

    @property
    def is_won(self) -> bool:
        return len(self.granted) >= self.voters.majority

    @property
    def is_lost(self) -> bool:
        return len(self.voters) - len(self.rejected) < self.voters.majority


@dataclass(slots=True, kw_only=True)
class Unattached:
    role: ClassVar = Role.UNATTACHED
    epoch: int
    election_deadline_ms: int
    leader_id: int | None = None  # Known to lead this epoch, but with unknown address.
    voted: ReplicaKey | None = None


@dataclass(slots=True, kw_only=True)
class Prospective:
    role: ClassVar = Role.PROSPECTIVE
    epoch: int
    election_deadline_ms: int
    ballot: Ballot
    leader_id: int | None = None  # The leader it followed in this epoch.
    leader_endpoints: tuple[Endpoint, ...] = ()
    voted: ReplicaKey | None = None
    elections_lost: int = 0  # In a row.


@dataclass(slots=True, kw_only=True)
class Candidate:
    role: ClassVar = Role.CANDIDATE
    leader_id: ClassVar[None] = None
    epoch: int
    election_deadline_ms: int  # Earlier once the election is lost.
    ballot: Ballot
    voted: ReplicaKey  # Itself.
    elections_lost: int = 0
    backs_off: bool = False


@dataclass(slots=True)
class Progress:
    """What a leader knows about a fetching replica, voter or observer."""

    fetch_offset: int  # Everything before it is on the replica's disk.
    last_fetch_ms: int
    end_offset_at_fetch: int  # The leader's log end offset at that time.
    caught_up: bool = False  # It had everything as of its last fetch or the one before.


@dataclass(slots=True, kw_only=True)
class Leader:
    role: ClassVar = Role.LEADER
    epoch: int
    leader_id: int
    voted: ReplicaKey | None
    epoch_start_offset: int  # Of the LeaderChange record; only offsets after it are counted.
    check_quorum_deadline_ms: int
    begin_epoch_deadline_ms: int
    progress: dict[ReplicaKey, Progress] = field(default_factory=dict)
    heard_from: set[ReplicaKey] = field(default_factory=set)  # Since the deadline was set.
    acknowledged: set[int] = field(default_factory=set)  # Voters that know of this epoch.


@dataclass(slots=True)
class Download:
    snapshot_id: OffsetAndEpoch
    position: int = 0


@dataclass(slots=True, kw_only=True)
class Follower:
    role: ClassVar = Role.FOLLOWER
    epoch: int
    leader_id: int
    leader_endpoints: tuple[Endpoint, ...]
    fetch_deadline_ms: int
    voted: ReplicaKey | None = None
    has_fetched: bool = False  # From this leader, which has not ended its epoch.
    has_ended: bool = False  # The leader has ended its epoch, or its process has ended.
    sign_of_life_ms: int = 0  # When to fetch even if the disk is not ready.
    download: Download | None = None


@dataclass(slots=True, kw_only=True)
class Resigned:
    role: ClassVar = Role.RESIGNED
    epoch: int
    leader_id: int  # Itself.
    voted: ReplicaKey | None
    election_deadline_ms: int
    preferred_candidates: tuple[ReplicaKey, ...] = ()
    acknowledged: set[int] = field(default_factory=set)


State = Unattached | Prospective | Candidate | Leader | Follower | Resigned
