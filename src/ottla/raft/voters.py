"""The voter set, and its changes along the log (KIP-853).

A replica is identified by its node id and the id of its log directory, so that a node that lost its
disk is not mistaken for the voter that it was. A voter without a directory id matches any
directory.

A voter set takes effect as soon as its record is in the log, committed or not; truncating the
record restores the previous set.
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
    """Immutable. Invariant: each node id occurs once."""

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
        """With one more voter, or with another version of an existing one."""
        return VoterSet.of((*self._without(added.key.id), added))

    def without_voter(self, key: ReplicaKey) -> "VoterSet":
        assert key in self
        return VoterSet.of(self._without(key.id))

    def _without(self, node_id: int) -> Iterator[Voter]:
        return (voter for voter in self.voters if voter.key.id != node_id)


class VoterHistory:
    """The voter sets of a log, by the offset of their records.

    `initial` is the configured set. It applies until the log or a snapshot says otherwise, and has
    no offset.
    """

    def __init__(self, initial: VoterSet) -> None:
        self._initial = initial
        self._sets: list[tuple[int, VoterSet]] = []  # Invariant: offsets increase.

    @property
    def latest(self) -> VoterSet:
        return self._sets[-1][1] if self._sets else self._initial

    @property
    def latest_offset(self) -> int | None:
        """The offset of the latest set's record; None if there is no such record."""
        return self._sets[-1][0] if self._sets else None

    def at(self, end_offset: int) -> VoterSet:
        """The set for a snapshot of everything before `end_offset`."""
        before = [voters for offset, voters in self._sets if offset < end_offset]
        return before[-1] if before else self._initial

    def possible(self, high_watermark: int) -> list[VoterSet]:
        """The sets in effect or that a truncation can restore, the latest first."""
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
        """A snapshot of everything before `end_offset` has replaced the log."""
        self._sets = [(end_offset - 1, voters)]

    def forget_before(self, offset: int) -> None:
        """Keep what can still be truncated to; everything before `offset` is committed."""
        while len(self._sets) > 1 and self._sets[1][0] < offset:
            del self._sets[0]
