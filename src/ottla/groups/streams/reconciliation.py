"""One step of a member from its current towards its target tasks.

An active task moves in two steps: its owner is told to revoke it, and only once it has confirmed
that does another member get it. A process keeps the state of a task in one directory, so it never
has two copies of the same task, in whatever role and thread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from ottla.groups.streams.member import NOTHING_OLDER, MemberState, StreamsMember
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Holders:
    """Who has each task, or has yet to revoke it."""

    active: dict[Task, str] = field(default_factory=dict)  # To its member.
    processes: dict[Task, set[str]] = field(default_factory=dict)  # In any role.

    @classmethod
    def of(cls, members: Iterable[StreamsMember]) -> "Holders":
        holders = cls()
        for member in members:
            held = member.held
            holders.active.update(dict.fromkeys(held.active, member.member_id))
            for task in held.all:
                holders.processes.setdefault(task, set()).add(member.process_id)
        return holders

    def is_free_for(self, member: StreamsMember, task: Task, *, active: bool) -> bool:
        if active and task in self.active:
            return False
        return member.process_id not in self.processes.get(task, ())


def reconcile(
    member: StreamsMember,
    target_epoch: int,
    target: TaskAssignment,
    owned: TaskAssignment | None,
    holders: Holders,
) -> StreamsMember:
    """The member after the step; the same object if there is nothing to do.

    `owned` is what the member reports; None if it reports nothing.
    """
    if member.is_reconciled_to(target_epoch):
        return member
    has_to_revoke = member.state is MemberState.UNREVOKED_TASKS
    if has_to_revoke and _still_owns(owned, member.pending_revocation):
        return member
    kept = member.assigned & target
    to_revoke = member.assigned - target
    if to_revoke != NOTHING and _still_owns(owned, to_revoke):
        return _moved(member, MemberState.UNREVOKED_TASKS, member.epoch, kept, to_revoke)
    wanted = target - kept
    free = TaskAssignment(
        *(
            frozenset(task for task in tasks if holders.is_free_for(member, task, active=is_active))
            for tasks, is_active in zip(wanted, (True, False, False), strict=True)
        )
    )
    state = MemberState.STABLE if free == wanted else MemberState.UNRELEASED_TASKS
    return _moved(member, state, target_epoch, kept | free, NOTHING)


def _still_owns(owned: TaskAssignment | None, tasks: TaskAssignment) -> bool:
    return owned is None or owned.meets(tasks)


def _moved(
    member: StreamsMember,
    state: MemberState,
    epoch: int,
    assigned: TaskAssignment,
    pending_revocation: TaskAssignment,
) -> StreamsMember:
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


def _older_epochs(member: StreamsMember, epoch: int, held: TaskAssignment) -> Mapping[Task, int]:
    """Kept tasks were assigned in an earlier epoch."""
    kept = held.active & member.held.active
    older = {
        task: since
        for task in kept
        if (since := member.older_epochs.get(task, member.epoch)) != epoch
    }
    return older or NOTHING_OLDER
