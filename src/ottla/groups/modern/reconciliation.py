"""One step of a member from its current towards its target assignment (KIP-848, KIP-1071).

What has one owner at a time (a partition, an active task) moves in two steps: its owner is first
told to revoke it, and only once it has confirmed that can it be assigned to another member.
Whatever the target, nothing is assigned while another member holds it.
"""

import enum
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar

from ottla.groups.modern.member import ModernMember
from ottla.protocol.entities import entity

NOTHING_OLDER: Final[Mapping[Any, int]] = MappingProxyType({})


class Assigned(Protocol):
    def __and__(self, other: Any, /) -> Self: ...

    def __or__(self, other: Any, /) -> Self: ...

    def __sub__(self, other: Any, /) -> Self: ...

    def isdisjoint(self, other: Any, /) -> bool: ...


A = TypeVar("A", bound=Assigned)


class MemberState(enum.IntEnum):
    """The values are those in the records of consumer groups.

    STABLE
        -> UNREVOKED   a new target takes something away
        -> UNRELEASED  a new target adds what others still have
    UNREVOKED          the member must confirm that it gave up what was taken away
        -> any         it did; the newest target counts
    UNRELEASED         the member has its epoch, and gets more as others release it
        -> any         by its next heartbeat
    """

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2


@entity
class ReconcilingMember(ModernMember[A]):
    NOTHING: ClassVar[Any]  # An empty assignment.

    rebalance_timeout_ms: int = -1
    state: MemberState = MemberState.STABLE
    pending_revocation: A
    # For what was assigned before the member's epoch: the epoch in which it got each.
    older_epochs: Mapping[Any, int] = field(default_factory=lambda: NOTHING_OLDER)

    @property
    def held(self) -> A:
        """What no other member may have now."""
        return self.assigned | self.pending_revocation

    @property
    def revocation_timeout_ms(self) -> int | None:
        """A member of the classic protocol is timed while it rejoins instead."""
        revokes = self.state is MemberState.UNREVOKED and not self.uses_classic_protocol
        return self.rebalance_timeout_ms if revokes else None

    @staticmethod
    @abstractmethod
    def exclusive(assigned: A) -> frozenset[Any]:
        """The part that has one owner at a time."""

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def has_had_since(self, epoch: int, items: Iterable[Any]) -> bool:
        """Whether the member has all of them, and had them in this epoch already (KIP-1251)."""
        held = self.exclusive(self.held)
        return all(
            each in held and self.older_epochs.get(each, self.epoch) <= epoch for each in items
        )

    def without_assignment(self) -> Self:
        return replace(self.resting(epoch=0), previous_epoch=-1, assigned=self.NOTHING)

    def resting(self, epoch: int) -> Self:
        """The member with this epoch and nothing left to revoke."""
        return replace(
            self,
            epoch=epoch,
            state=MemberState.STABLE,
            pending_revocation=self.NOTHING,
            older_epochs=NOTHING_OLDER,
        )


M = TypeVar("M", bound=ReconcilingMember[Any])


def reconcile(
    member: M,
    target_epoch: int,
    target: A,
    owned: A | None,
    free: Callable[[A], A],
) -> M:
    """The member after the step; the same object if there is nothing to do.

    `owned` is what the member reports, None if it reports nothing; `free` returns the part that
    nobody else holds.
    """
    kept = member.assigned & target
    loses = kept != member.assigned
    if member.is_reconciled_to(target_epoch) and not loses:
        return member
    if member.state is MemberState.UNREVOKED and _still_owns(owned, member.pending_revocation):
        return member
    to_revoke = member.assigned - target
    if loses and _still_owns(owned, to_revoke):
        return _moved(member, MemberState.UNREVOKED, member.epoch, kept, to_revoke)
    wanted = target - kept
    given = free(wanted)
    state = MemberState.STABLE if given == wanted else MemberState.UNRELEASED
    return _moved(member, state, target_epoch, kept | given, member.NOTHING)


def _still_owns(owned: A | None, assigned: A) -> bool:
    return owned is None or not owned.isdisjoint(assigned)


def _moved(member: M, state: MemberState, epoch: int, assigned: Any, pending_revocation: Any) -> M:
    before = (member.state, member.epoch, member.assigned, member.pending_revocation)
    if before == (state, epoch, assigned, pending_revocation):
        return member
    return replace(
        member,
        state=state,
        epoch=epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        pending_revocation=pending_revocation,
        older_epochs=_older_epochs(member, epoch, assigned | pending_revocation),
    )


def _older_epochs(member: ReconcilingMember[Any], epoch: int, held: Any) -> Mapping[Any, int]:
    """What is kept was assigned in an earlier epoch, unless the member was away."""
    if member.epoch <= 0 or (epoch == member.epoch and not member.older_epochs):
        return NOTHING_OLDER
    kept = member.exclusive(held) & member.exclusive(member.held)
    epochs = ((each, member.older_epochs.get(each, member.epoch)) for each in kept)
    return {each: since for each, since in epochs if since != epoch} or NOTHING_OLDER
