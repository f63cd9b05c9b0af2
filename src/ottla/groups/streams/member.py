"""A member of a streams group: one thread of one process of the application."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Final

from ottla.groups.modern.reconciliation import NOTHING_OLDER, MemberState, ReconcilingMember
from ottla.groups.streams.records import (
    CurrentTaskIds,
    Endpoint,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    from_task_ids,
)
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment, Tasks, by_subtopology
from ottla.machine.record import RecordValue
from ottla.protocol.entities import entity

_FIRST_STATE: Final = 1  # Records of streams groups number the states from here.


@entity
class StreamsMember(ReconcilingMember[TaskAssignment]):
    METADATA: ClassVar = StreamsGroupMemberMetadataValue
    NOTHING: ClassVar = NOTHING

    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    assigned: TaskAssignment = NOTHING
    pending_revocation: TaskAssignment = NOTHING

    @staticmethod
    def exclusive(assigned: TaskAssignment) -> Tasks:
        return assigned.active

    def assignment(self) -> StreamsGroupCurrentMemberAssignmentValue:
        assigned, pending = self.assigned, self.pending_revocation
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=_FIRST_STATE + self.state,
            active_tasks=self._active_ids(assigned.active),
            standby_tasks=_ids(assigned.standby),
            warmup_tasks=_ids(assigned.warmup),
            active_tasks_pending_revocation=self._active_ids(pending.active),
            standby_tasks_pending_revocation=_ids(pending.standby),
            warmup_tasks_pending_revocation=_ids(pending.warmup),
        )

    def _active_ids(self, tasks: Tasks) -> tuple[CurrentTaskIds, ...]:
        return tuple(
            CurrentTaskIds(
                subtopology_id=subtopology_id,
                partitions=partitions,
                assignment_epochs=tuple(
                    self.older_epochs.get(Task(subtopology_id, partition), self.epoch)
                    for partition in partitions
                ),
            )
            for subtopology_id, partitions in by_subtopology(tasks).items()
        )

    def with_assignment(self, value: RecordValue) -> "StreamsMember":
        assert isinstance(value, StreamsGroupCurrentMemberAssignmentValue)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state - _FIRST_STATE),
            assigned=from_task_ids(value.active_tasks, value.standby_tasks, value.warmup_tasks),
            pending_revocation=from_task_ids(
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
            ),
            older_epochs=_older_epochs(value),
        )


def _ids(tasks: Tasks) -> tuple[CurrentTaskIds, ...]:
    return tuple(
        CurrentTaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks).items()
    )


def _older_epochs(value: StreamsGroupCurrentMemberAssignmentValue) -> Mapping[Task, int]:
    older = {
        Task(ids.subtopology_id, partition): epoch
        for ids in (*value.active_tasks, *value.active_tasks_pending_revocation)
        for partition, epoch in zip(ids.partitions, ids.assignment_epochs or (), strict=False)
        if epoch != value.member_epoch
    }
    return older or NOTHING_OLDER


def free_tasks(
    member: StreamsMember, others: Iterable[StreamsMember], wanted: TaskAssignment
) -> TaskAssignment:
    """What of `wanted` nobody has, or has yet to revoke.

    A process keeps the state of a task in one directory, so it never has two copies of the same
    task, in whatever role and thread.
    """
    active: set[Task] = set()
    in_process: set[Task] = set()
    for other in others:
        active |= other.held.active
        if other.process_id == member.process_id:
            in_process |= other.held.all
    return TaskAssignment(
        wanted.active - active - in_process,
        wanted.standby - in_process,
        wanted.warmup - in_process,
    )
