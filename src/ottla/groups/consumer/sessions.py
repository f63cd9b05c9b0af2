"""The timers of consumer group members. Those of the classic protocol have two more:

join  the member was told to rejoin and did not
sync  the member did not fetch its assignment
"""

from collections.abc import Iterable

from ottla.groups.consumer.group import ConsumerGroup, Draft
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.migration import Migration
from ottla.groups.modern.sessions import MemberSessions
from ottla.groups.modern.subscription import subscribed_hash
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Result


class ConsumerSessions(MemberSessions[ConsumerGroup]):
    KINDS = (*MemberSessions.KINDS, "join", "sync")

    def __init__(self, state: CoordinatorState, migration: Migration) -> None:
        super().__init__(state, state.consumer_groups, ConsumerGroup.type_name)
        self._migration = migration
        self._told_to_rejoin: set[str] = set()  # Keys of `join` timers.

    def _timeout_ms(self, group_id: str, member: ConsumerMember) -> int:
        if member.classic is not None:
            return member.classic.session_timeout_ms
        return self._state.consumer_config(group_id).session_timeout_ms

    def expect_rejoin(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        """Repeating the request does not extend the deadline."""
        key = self._key("join", group_id, member.member_id)
        if key not in self._told_to_rejoin:
            self._told_to_rejoin.add(key)
            self._schedule("join", group_id, member, now_ms + member.rebalance_timeout_ms)

    def expect_sync(self, group_id: str, member: ConsumerMember, now_ms: int) -> None:
        self._cancel("join", group_id, member.member_id)
        self._schedule("sync", group_id, member, now_ms + member.rebalance_timeout_ms)

    def on_synced(self, group_id: str, member_id: str) -> None:
        self._cancel("sync", group_id, member_id)

    def end_all(self, group: ConsumerGroup) -> None:
        """The group has become a classic one, which has its own timers."""
        for member_id in group.members:
            self.end(group.group_id, member_id)

    def _cancel(self, kind: str, group_id: str, member_id: str) -> None:
        self._told_to_rejoin.discard(self._key(kind, group_id, member_id))
        super()._cancel(kind, group_id, member_id)

    def _expire(
        self, kind: str, group_id: str, member_id: str, epoch: int, now_ms: int
    ) -> Result[None]:
        self._told_to_rejoin.discard(self._key(kind, group_id, member_id))
        return super()._expire(kind, group_id, member_id, epoch, now_ms)

    def removal(self, group: ConsumerGroup, member_id: str, now_ms: int) -> Result[None]:
        effects = Effects()
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
