"""The timers of the members of one type of group.

    session    the member sent no heartbeat
    rebalance  the member did not give up what it was told to give up

In each case the member is removed from the group. A type of group may have more of these.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

from ottla.groups.modern.group import ModernGroup
from ottla.groups.modern.member import ModernMember
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result

G = TypeVar("G", bound=ModernGroup[Any, Any])


class MemberSessions(ABC, Generic[G]):
    KINDS: ClassVar[tuple[str, ...]] = ("session", "rebalance")

    def __init__(self, state: CoordinatorState, groups: Mapping[str, G], type_name: str) -> None:
        self._state = state
        self._groups = groups
        self._type_name = type_name

    @abstractmethod
    def _timeout_ms(self, group_id: str, member: Any) -> int: ...

    @abstractmethod
    def removal(self, group: G, member_id: str, now_ms: int) -> Result[None]:
        """The next heartbeat of another member makes the target without this one."""

    def on_loaded(self, group: G, now_ms: int) -> None:
        group_id = group.group_id
        for member in group.members.values():
            timeout_ms = self._timeout_ms(group_id, member)
            absences = self._state.absences
            deadline_ms = absences.begin(group_id, member.member_id, timeout_ms, now_ms)
            self._schedule("session", group_id, member, deadline_ms)
            self._watch_revocation(group_id, member, now_ms)

    def keep_alive(self, group_id: str, member: ModernMember[Any], now_ms: int) -> None:
        """`member` is as the operation leaves it; the group is not changed yet."""
        self._state.absences.end(group_id, member.member_id)
        deadline_ms = now_ms + self._timeout_ms(group_id, member)
        self._schedule("session", group_id, member, deadline_ms)
        group = self._groups.get(group_id)
        if group is None or group.members.get(member.member_id) != member:
            self._watch_revocation(group_id, member, now_ms)

    def _watch_revocation(self, group_id: str, member: ModernMember[Any], now_ms: int) -> None:
        timeout_ms = member.revocation_timeout_ms
        if timeout_ms is None:
            self._cancel("rebalance", group_id, member.member_id)
        else:
            self._schedule("rebalance", group_id, member, now_ms + timeout_ms)

    def end(self, group_id: str, member_id: str) -> None:
        self._state.absences.end(group_id, member_id)
        for kind in self.KINDS:
            self._cancel(kind, group_id, member_id)

    def _key(self, kind: str, group_id: str, member_id: str) -> str:
        return f"{self._type_name}/{kind}/{group_id}/{member_id}"

    def _cancel(self, kind: str, group_id: str, member_id: str) -> None:
        self._state.timers.cancel(self._key(kind, group_id, member_id))

    def _schedule(
        self, kind: str, group_id: str, member: ModernMember[Any], deadline_ms: int
    ) -> None:
        self._state.timers.schedule(
            self._key(kind, group_id, member.member_id),
            deadline_ms,
            partial(self._expire, kind, group_id, member.member_id, member.epoch),
        )

    def _expire(
        self, kind: str, group_id: str, member_id: str, epoch: int, now_ms: int
    ) -> Result[None]:
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None or (kind == "rebalance" and member.epoch != epoch):
            return Result(None)
        return self.removal(group, member_id, now_ms)
