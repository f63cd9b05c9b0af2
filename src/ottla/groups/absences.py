"""Members that no coordinator has heard from since it was loaded.

A new coordinator cannot know when its predecessor last heard from a member, so each member gets a
full session again. Without a remedy, a dead member would stay in its group for as long as
coordinators fail over before that session ends, and a rebalance would wait for it. So a coordinator
that has served for a while records the members it has not heard from, with the rest of their
sessions, and the next one resumes from there. A member that is heard from again is removed.

Kafka has no such record; its coordinators skip unknown record types.
"""

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar, Final

from ottla.groups.record_keys import GroupKey
from ottla.machine.contract import Timers
from ottla.machine.record import Record, ValueLayout
from ottla.machine.result import Result
from ottla.protocol.entities import entity, wire

INTERVAL_MS: Final = 10_000  # Longer than live members take to find a new coordinator.
_TIMER_KEY: Final = "absences"


@entity
class AbsenceKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 1_000  # Far from any that Kafka may come to use.


@entity
class AbsentMember(ValueLayout):
    member_id: str = field(metadata=wire("string"))
    left_ms: int = field(metadata=wire("int32"))  # Of its session.


@entity
class AbsenceValue(ValueLayout):
    members: tuple[AbsentMember, ...]


class Absences:
    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._written: dict[str, AbsenceValue] = {}  # By group. Replicated.
        self._unheard: dict[str, dict[str, int]] = {}  # Session ends, by group and member.

    def replay(self, group_id: str, value: AbsenceValue | None) -> None:
        if value is None:
            self._written.pop(group_id, None)
        else:
            self._written[group_id] = value

    def snapshot(self) -> Iterator[Record]:
        for group_id, value in self._written.items():
            yield Record(AbsenceKey(group_id=group_id), value)

    def begin(self, group_id: str, member_id: str, timeout_ms: int, now_ms: int) -> int:
        """Returns when a loaded member's session ends."""
        left_ms = timeout_ms
        written = self._written.get(group_id)
        if written is not None:
            known = (member.left_ms for member in written.members if member.member_id == member_id)
            left_ms = min(timeout_ms, max(next(known, timeout_ms), INTERVAL_MS))
        deadline_ms = now_ms + left_ms
        self._unheard.setdefault(group_id, {})[member_id] = deadline_ms
        return deadline_ms

    def end(self, group_id: str, member_id: str) -> None:
        """The member was heard from, or is gone."""
        members = self._unheard.get(group_id)
        if members is not None:
            members.pop(member_id, None)
            if not members:
                del self._unheard[group_id]

    def on_loaded(self, now_ms: int) -> None:
        """Call after the sessions of all members have begun."""
        if self._unheard or self._written:
            self._timers.schedule(_TIMER_KEY, now_ms + INTERVAL_MS, self._write)

    def _write(self, now_ms: int) -> Result[None]:
        self.on_loaded(now_ms)
        return Result(None, tuple(self._changes(now_ms)))

    def _changes(self, now_ms: int) -> Iterator[Record]:
        for group_id, members in self._unheard.items():
            absent = tuple(
                AbsentMember(member_id=member_id, left_ms=max(0, deadline_ms - now_ms))
                for member_id, deadline_ms in members.items()
            )
            if _is_news(absent, self._written.get(group_id)):
                yield Record(AbsenceKey(group_id=group_id), AbsenceValue(members=absent))
        for group_id in self._written.keys() - self._unheard.keys():
            yield Record(AbsenceKey(group_id=group_id), None)


def _is_news(absent: tuple[AbsentMember, ...], written: AbsenceValue | None) -> bool:
    """A member with a long session is not recorded every few seconds."""
    before = (
        {} if written is None else {member.member_id: member.left_ms for member in written.members}
    )
    return before.keys() != {member.member_id for member in absent} or any(
        member.left_ms * 4 <= before[member.member_id] * 3 for member in absent
    )
