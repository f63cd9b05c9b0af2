"""Who votes: the voter set, and how it changed along the log (KIP-853).

A replica is named by its node id and the id of its log directory, so that a node that lost its disk
is not taken for the voter that it was. A voter without a directory id matches any directory.

A voter set is in force from the moment that its record is in the log, committed or not; cutting the
record off brings the set before it back.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from uuid import UUID

from ottla.protocol.lazy_dataclass import dataclass

KRAFT_VERSION_MAX = 1


class ReplicaKey(NamedTuple):
    id: int
    directory_id: UUID | None = None

    def __str__(self) -> str:
        return str(self.id)


class Endpoint(NamedTuple):
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Voter:
    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    min_kraft_version: int = 0
    max_kraft_version: int = KRAFT_VERSION_MAX


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Immutable. Invariant: each node id is in it once."""

    voters: tuple[Voter, ...] = ()

    @classmethod
    def of(cls, voters: Iterable[Voter]) -> "VoterSet":
        ordered = tuple(sorted(voters, key=lambda voter: voter.key.id))
        assert len({voter.key.id for voter in ordered}) == len(ordered)
        return cls(ordered)

    def __len__(self) -> int:
        return len(self.voters)

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __contains__(self, key: ReplicaKey) -> bool:
        voter = self.voter(key.id)
        return voter is not None and voter.key.directory_id in (None, key.directory_id)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def voter(self, node_id: int) -> Voter | None:
        return next((voter for voter in self.voters if voter.key.id == node_id), None)

    def others(self, node_id: int) -> list[ReplicaKey]:
        return [voter.key for voter in self.voters if voter.key.id != node_id]

    def with_voter(self, added: Voter) -> "VoterSet":
        """With one more voter, or with another version of one that is in the set."""
        return VoterSet.of((*self._without(added.key.id), added))

    def without_voter(self, key: ReplicaKey) -> "VoterSet":
        assert key in self
        return VoterSet.of(self._without(key.id))

    def _without(self, node_id: int) -> Iterator[Voter]:
        return (voter for voter in self.voters if voter.key.id != node_id)


class VoterHistory:
    """The voter sets of a log, by the offset of their records.

    `initial` is what the node was configured with. It is in force until the log or a snapshot says
    otherwise, and has no offset.
    """

    def __init__(self, initial: VoterSet) -> None:
        self._initial = initial
        self._sets: list[tuple[int, VoterSet]] = []  # Invariant: offsets rise.

    @property
    def latest(self) -> VoterSet:
        return self._sets[-1][1] if self._sets else self._initial

    @property
    def latest_offset(self) -> int | None:
        """Of the record of the latest set; None when no record says who votes."""
        return self._sets[-1][0] if self._sets else None

    def at(self, end_offset: int) -> VoterSet:
        """The set that a snapshot of everything before `end_offset` holds."""
        before = [voters for offset, voters in self._sets if offset < end_offset]
        return before[-1] if before else self._initial

    def possible(self, high_watermark: int) -> list[VoterSet]:
        """The sets that are in force or that a truncation can bring back, the latest first."""
        found = []
        for offset, voters in reversed(self._sets):
            found.append(voters)
            if offset < high_watermark:
                return found
        return [*found, self._initial]

    def add(self, offset: int, voters: VoterSet) -> None:
        assert not self._sets or offset > self._sets[-1][0]
        self._sets.append((offset, voters))

    def truncate_to(self, end_offset: int) -> None:
        self._sets = [entry for entry in self._sets if entry[0] < end_offset]

    def start_from_snapshot(self, end_offset: int, voters: VoterSet) -> None:
        """The log is gone; a snapshot of everything before `end_offset` replaced it."""
        self._sets = [(end_offset - 1, voters)]

    def forget_before(self, offset: int) -> None:
        """Keep what can still be truncated to; everything before `offset` is committed."""
        while len(self._sets) > 1 and self._sets[1][0] < offset:
            del self._sets[0]
