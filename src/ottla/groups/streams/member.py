"""A member of a streams group: one thread of one process of the application."""

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final

from ottla.groups.record import Record, RecordValue
from ottla.groups.streams.records import (
    CurrentTaskIds,
    Endpoint,
    KeyValue,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    from_task_ids,
)
from ottla.groups.streams.tasks import NOTHING, Task, TaskAssignment, Tasks, by_subtopology
from ottla.protocol.lazy_dataclass import dataclass

NOTHING_OLDER: Final[Mapping[Task, int]] = MappingProxyType({})


class MemberState(enum.IntEnum):
    """The values are those in the records.

    STABLE
        -> UNREVOKED_TASKS   a new target takes tasks away
        -> UNRELEASED_TASKS  a new target gives tasks that others still have
    UNREVOKED_TASKS          the member must confirm that it revoked the tasks
        -> any of the three  it did; the newest target counts
    UNRELEASED_TASKS         the member has its epoch, and gets more as others release them
        -> any of the three  by its next heartbeat
    """

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    member_id: str
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: TaskAssignment = NOTHING
    pending_revocation: TaskAssignment = NOTHING
    # For active tasks assigned before the member's epoch: the epoch in which it got each.
    older_epochs: Mapping[Task, int] = field(default_factory=lambda: NOTHING_OLDER)

    @property
    def held(self) -> TaskAssignment:
        return self.assigned | self.pending_revocation

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch

    def has_had_since(self, epoch: int, tasks: Iterable[Task]) -> bool:
        """Whether the member has all of them, and had them in this epoch already."""
        active = self.held.active
        return all(
            task in active and self.older_epochs.get(task, self.epoch) <= epoch for task in tasks
        )

    # Records.

    def metadata(self) -> StreamsGroupMemberMetadataValue:
        return StreamsGroupMemberMetadataValue(
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=self.user_endpoint,
            client_tags=self.client_tags,
        )

    def metadata_record(self, group_id: str) -> Record:
        key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=self.member_id)
        return Record(key, self.metadata())

    def with_metadata(self, value: RecordValue) -> "StreamsMember":
        assert isinstance(value, StreamsGroupMemberMetadataValue)
        return replace(
            self,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=value.user_endpoint,
            client_tags=value.client_tags,
        )

    def assignment_record(self, group_id: str) -> Record:
        assigned, pending = self.assigned, self.pending_revocation
        return Record(
            StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=self.member_id),
            StreamsGroupCurrentMemberAssignmentValue(
                member_epoch=self.epoch,
                previous_member_epoch=self.previous_epoch,
                state=self.state,
                active_tasks=self._active_ids(assigned.active),
                standby_tasks=_ids(assigned.standby),
                warmup_tasks=_ids(assigned.warmup),
                active_tasks_pending_revocation=self._active_ids(pending.active),
                standby_tasks_pending_revocation=_ids(pending.standby),
                warmup_tasks_pending_revocation=_ids(pending.warmup),
            ),
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

    def with_assignment(self, value: RecordValue | None) -> "StreamsMember":
        """None: the member is in the group, but was never assigned anything."""
        if value is None:
            return StreamsMember(member_id=self.member_id).with_metadata(self.metadata())
        assert isinstance(value, StreamsGroupCurrentMemberAssignmentValue)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state),
            assigned=TaskAssignment(
                from_task_ids(value.active_tasks),
                from_task_ids(value.standby_tasks),
                from_task_ids(value.warmup_tasks),
            ),
            pending_revocation=TaskAssignment(
                from_task_ids(value.active_tasks_pending_revocation),
                from_task_ids(value.standby_tasks_pending_revocation),
                from_task_ids(value.warmup_tasks_pending_revocation),
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
