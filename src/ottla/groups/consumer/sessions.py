"""The timers of consumer group members, and their expiry.

    session    the member sent no heartbeat
    rebalance  the member did not revoke the partitions that it was told to revoke
    join       a member of the classic protocol was told to rejoin and did not
    sync       a member of the classic protocol did not fetch its assignment

In each case the member is removed from the group.
"""

from collections.abc import Iterable
from functools import partial

from ottla.groups.consumer.draft import Draft
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember, MemberState
from ottla.groups.consumer.migration import Migration
from ottla.groups.modern.subscription import subscribed_hash
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result

_KINDS = ("session", "rebalance", "join", "sync")


class ConsumerSessions:
    def __init__(self, state: CoordinatorState, migration: Migration) -> None:
        self._state = state
        self._migration = migration
        self._told_to_rejoin: set[str] = set()  # Keys of `join` timers.

    def on_loaded(self, group: ConsumerGroup, now_ms: int) -> None:
        for member in group.members.values():
            timeout_ms = self._timeout_ms(group.group_id, member)
            deadline_ms = self._state.absences.begin(
                group.group_id, member.member_id, timeout_ms, now_ms
            )
            self._schedule("session", group.group_id, member, deadline_ms)
            self.watch_revocation(group.group_id, member, now_ms)

    def keep_alive(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        self._state.absences.end(group_id, member.member_id)
        deadline_ms = now_ms + self._timeout_ms(group_id, member)
        self._schedule("session", group_id, member, deadline_ms)

    def _timeout_ms(self, group_id: str, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self._state.consumer_config(group_id).session_timeout_ms

    def watch_revocation(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """A member of the classic protocol is timed while it rejoins instead."""
        if member.uses_classic_protocol or member.state is not MemberState.UNREVOKED_PARTITIONS:
            self._state.timers.cancel(_key("rebalance", group_id, member.member_id))
        else:
            self._schedule("rebalance", group_id, member, now_ms + member.rebalance_timeout_ms)

    def expect_rejoin(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """Repeating the request does not extend the deadline."""
        key = _key("join", group_id, member.member_id)
        if key not in self._told_to_rejoin:
            self._told_to_rejoin.add(key)
            self._schedule("join", group_id, member, now_ms + member.rebalance_timeout_ms)

    def expect_sync(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        self._cancel("join", group_id, member.member_id)
        self._schedule("sync", group_id, member, now_ms + member.rebalance_timeout_ms)

    def on_synced(self, group_id: str, member_id: str) -> None:
        self._cancel("sync", group_id, member_id)

    def end(self, group_id: str, member_id: str) -> None:
        self._state.absences.end(group_id, member_id)
        for kind in _KINDS:
            self._cancel(kind, group_id, member_id)

    def end_all(self, group: ConsumerGroup) -> None:
        """The group has become a classic one, which has its own timers."""
        for member_id in group.members:
            self.end(group.group_id, member_id)

    def _cancel(self, kind: str, group_id: str, member_id: str) -> None:
        key = _key(kind, group_id, member_id)
        self._told_to_rejoin.discard(key)
        self._state.timers.cancel(key)

    def _schedule(self, kind: str, group_id: str, member: ConsumerMember, deadline_ms: int) -> None:
        self._state.timers.schedule(
            _key(kind, group_id, member.member_id),
            deadline_ms,
            partial(self._expire, kind, group_id, member.member_id, member.epoch),
        )

    def _expire(
        self, kind: str, group_id: str, member_id: str, epoch: int, now_ms: int
    ) -> Result[None]:
        effects = Effects()
        self._told_to_rejoin.discard(_key(kind, group_id, member_id))
        group = self._state.consumer_groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is not None and member is not None:
            has_moved_on = kind == "rebalance" and member.epoch != epoch
            if not has_moved_on:
                self.remove(group, [member_id], now_ms, effects)
        return effects.result(None)

    def remove(
        self, group: ConsumerGroup, member_ids: Iterable[str], now_ms: int, effects: Effects
    ) -> None:
        """The next heartbeat of another member makes the target without them."""
        draft = Draft(group)
        for member_id in member_ids:
            draft.write(*group.member_tombstones(member_id))
            self.end(group.group_id, member_id)
        topics_hash = subscribed_hash(draft.group, self._state.catalog)
        draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        if self._migration.maybe_downgrade(draft, now_ms, effects):
            self.end_all(group)
        else:
            effects.records.extend(draft.records)


def _key(kind: str, group_id: str, member_id: str) -> str:
    return f"consumer/{kind}/{group_id}/{member_id}"
