"""One step of a member from its current towards its target assignment (KIP-848).

A partition moves in two steps: its owner is first told to revoke it, and only once it has confirmed
that can the partition be assigned to another member. Whatever the target, a partition is never
assigned while another member holds it.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from ottla.groups.consumer.member import NOTHING_OLDER, ConsumerMember, MemberState
from ottla.groups.partitions import NOTHING, Assignment, TopicIdPartition
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class CurrentAssignmentBuilder:
    target_epoch: int
    target: Assignment
    owned: Assignment | None  # As reported by the member; None if it reports nothing.
    holder: Callable[[TopicIdPartition], str | None]  # The member that currently has a partition.
    target_is_old: bool = False  # The member may have unsubscribed since; `target` allows for that.

    def build(self, member: ConsumerMember) -> ConsumerMember:
        """The member after the step; the same object if there is nothing to do."""
        has_more = self.target_is_old and not member.assigned <= self.target
        if member.is_reconciled_to(self.target_epoch) and not has_more:
            return member
        has_to_revoke = member.state is MemberState.UNREVOKED_PARTITIONS
        if has_to_revoke and self._still_owns(member.pending_revocation):
            return member
        return self._next(member)

    def _still_owns(self, partitions: Assignment) -> bool:
        return self.owned is None or not self.owned.isdisjoint(partitions)

    def _next(self, member: ConsumerMember) -> ConsumerMember:
        kept = member.assigned & self.target
        to_revoke = member.assigned - self.target
        if to_revoke and self._still_owns(to_revoke):
            return _moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, to_revoke)
        wanted = self.target - kept
        free = frozenset(each for each in wanted if self.holder(each) in {None, member.member_id})
        waits = len(free) < len(wanted)
        state = MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE
        return _moved(member, state, self.target_epoch, kept | free, NOTHING)


def _moved(
    member: ConsumerMember,
    state: MemberState,
    epoch: int,
    assigned: Assignment,
    pending_revocation: Assignment,
) -> ConsumerMember:
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


def _older_epochs(
    member: ConsumerMember, epoch: int, held: Assignment
) -> Mapping[TopicIdPartition, int]:
    """Kept partitions were assigned in an earlier epoch, unless the member was away."""
    kept = held & member.held if member.epoch > 0 else NOTHING
    if not kept or (epoch == member.epoch and not member.older_epochs):
        return NOTHING_OLDER
    epochs = ((each, member.older_epochs.get(each, member.epoch)) for each in kept)
    return {each: since for each, since in epochs if since != epoch}
