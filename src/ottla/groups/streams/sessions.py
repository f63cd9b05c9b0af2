"""The timers of streams groups.

session    the member sent no heartbeat, and is removed
rebalance  the member did not give up the tasks that it was told to give up, and is removed
initial    a new group has waited for more members; its tasks are assigned
"""

from collections.abc import Callable
from functools import partial

from ottla.groups.modern.draft import GroupDraft
from ottla.groups.record import Record
from ottla.groups.state import CoordinatorState
from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.member import MemberState, StreamsMember
from ottla.machine.result import Result

Draft = GroupDraft[StreamsGroup]


class StreamsSessions:
    def __init__(self, state: CoordinatorState, write_target: Callable[[Draft, int], None]) -> None:
        self._state = state
        self._write_target = write_target
        self._delayed: set[str] = set()  # Groups whose first target is delayed.

    def on_loaded(self, group: StreamsGroup, now_ms: int) -> None:
        timeout_ms = self._state.streams_config(group.group_id).session_timeout_ms
        for member in group.members.values():
            deadline_ms = self._state.absences.begin(
                group.group_id, member.member_id, timeout_ms, now_ms
            )
            self._schedule("session", group.group_id, member, deadline_ms)
            self._watch_revocation(group.group_id, member, now_ms)

    def keep_alive(self, group_id: str, member: StreamsMember, now_ms: int) -> None:
        self._state.absences.end(group_id, member.member_id)
        timeout_ms = self._state.streams_config(group_id).session_timeout_ms
        self._schedule("session", group_id, member, now_ms + timeout_ms)
        before = self._state.streams_groups.get(group_id)
        if before is None or before.members.get(member.member_id) != member:
            self._watch_revocation(group_id, member, now_ms)

    def _watch_revocation(self, group_id: str, member: StreamsMember, now_ms: int) -> None:
        if member.state is MemberState.UNREVOKED_TASKS:
            self._schedule("rebalance", group_id, member, now_ms + member.rebalance_timeout_ms)
        else:
            self._state.timers.cancel(_key("rebalance", group_id, member.member_id))

    def _schedule(self, kind: str, group_id: str, member: StreamsMember, deadline_ms: int) -> None:
        self._state.timers.schedule(
            _key(kind, group_id, member.member_id),
            deadline_ms,
            partial(self._expire, kind, group_id, member.member_id, member.epoch),
        )

    def _expire(
        self, kind: str, group_id: str, member_id: str, epoch: int, _now_ms: int
    ) -> Result[None]:
        group = self._state.streams_groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None or (kind == "rebalance" and member.epoch != epoch):
            return Result(None)
        return Result(None, self.removal(group, member_id))

    def removal(self, group: StreamsGroup, member_id: str) -> tuple[Record, ...]:
        """The next heartbeat of another member makes the target without it."""
        self._state.absences.end(group.group_id, member_id)
        for kind in ("session", "rebalance"):
            self._state.timers.cancel(_key(kind, group.group_id, member_id))
        draft = Draft(group)
        draft.write(*group.member_tombstones(member_id))
        draft.write(
            group.epoch_record(
                group.epoch + 1,
                group.metadata_hash,
                group.validated_topology_epoch,
                group.assignment_configs,
            )
        )
        return tuple(draft.records)

    # The first assignment.

    def delay_first_target(self, group_id: str, config: StreamsConfig, now_ms: int) -> None:
        if config.initial_delay_ms > 0 and group_id not in self._delayed:
            self._delayed.add(group_id)
            self._state.timers.schedule(
                _key("initial", group_id, ""),
                now_ms + config.initial_delay_ms,
                partial(self._end_delay, group_id),
            )

    def is_delayed(self, group_id: str) -> bool:
        return group_id in self._delayed

    def _end_delay(self, group_id: str, now_ms: int) -> Result[None]:
        self._delayed.discard(group_id)
        group = self._state.streams_groups.get(group_id)
        if group is None or group.is_empty or group.epoch == group.assignment_epoch:
            return Result(None)
        draft = Draft(group)
        self._write_target(draft, now_ms)
        return Result(None, tuple(draft.records))


def _key(kind: str, group_id: str, member_id: str) -> str:
    return f"streams/{kind}/{group_id}/{member_id}"
