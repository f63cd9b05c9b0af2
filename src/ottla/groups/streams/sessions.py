"""The timers of streams groups: those of their members, and one of the group.

initial  a new group has waited for more members; its tasks are assigned
"""

from collections.abc import Callable
from functools import partial

from ottla.groups.modern.sessions import MemberSessions
from ottla.groups.state import CoordinatorState
from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.group import Draft, StreamsGroup
from ottla.groups.streams.member import StreamsMember
from ottla.machine.result import Result


class StreamsSessions(MemberSessions[StreamsGroup]):
    def __init__(self, state: CoordinatorState, write_target: Callable[[Draft, int], None]) -> None:
        super().__init__(state, state.streams_groups, StreamsGroup.type_name)
        self._write_target = write_target
        self._delayed: set[str] = set()  # Groups whose first target is delayed.

    def _timeout_ms(self, group_id: str, member: StreamsMember) -> int:  # noqa: ARG002
        return self._state.streams_config(group_id).session_timeout_ms

    def removal(self, group: StreamsGroup, member_id: str, now_ms: int) -> Result[None]:  # noqa: ARG002
        self.end(group.group_id, member_id)
        epoch = group.epoch_record(group.epoch + 1, group.metadata_hash)
        return Result(None, (*group.member_tombstones(member_id), epoch))

    # The first assignment.

    def delay_first_target(self, group_id: str, config: StreamsConfig, now_ms: int) -> None:
        if config.initial_delay_ms > 0 and group_id not in self._delayed:
            self._delayed.add(group_id)
            self._state.timers.schedule(
                self._key("initial", group_id, ""),
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
