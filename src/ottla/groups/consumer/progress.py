"""Advances a consumer group and one of its members after the member was heard from.

1. The subscribed topics are looked up when a subscription or the catalog has changed, and those of
   regular expressions periodically, as permissions can change as well. A different result begins a
   new group epoch.
2. A group epoch without a target assignment gets one, if it is due.
3. The member takes a step towards its target, which may belong to an older group epoch.
"""

from collections.abc import Callable, Mapping

from ottla.groups.assignors.range import assign_range
from ottla.groups.assignors.spec import Assignor
from ottla.groups.assignors.uniform import assign_uniform
from ottla.groups.consumer.group import ConsumerGroup, Draft
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.subscription import resolve_expressions
from ottla.groups.modern.reconciliation import reconcile
from ottla.groups.modern.subscription import partition_counts, subscribed_hash
from ottla.groups.modern.target import group_spec
from ottla.groups.partitions import Assignment
from ottla.groups.state import CoordinatorState

_ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


class Progress:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    def advance(
        self,
        draft: Draft,
        member: ConsumerMember,
        owned: Assignment | None,
        now_ms: int,
        *,
        subscription_changed: bool,
        may_describe: Callable[[str], bool],
    ) -> ConsumerMember:
        """`member` may hold something else than in the draft: it returned with nothing."""
        self._maybe_begin_epoch(draft, now_ms, may_describe, subscription_changed)
        pace = self._state.consumer_config(draft.group.group_id).pace
        if pace.is_target_due(draft.group, now_ms):
            default_assignor = self._state.config.consumer_assignors[0]
            assign = _ASSIGNORS[draft.group.preferred_assignor(default_assignor)]
            draft.write_target(assign(group_spec(draft.group, self._state.catalog)), now_ms)
        group = draft.group
        target = group.target(member.member_id)
        if group.epoch > group.assignment_epoch:
            target = self._subscribed(group, member, target)

        def free(wanted: Assignment) -> Assignment:
            takers = {None, member.member_id}
            return frozenset(each for each in wanted if group.holder(each) in takers)

        moved = reconcile(member, group.assignment_epoch, target, owned, free)
        draft.write_assignment(moved)
        return moved

    def _subscribed(
        self, group: ConsumerGroup, member: ConsumerMember, target: Assignment
    ) -> Assignment:
        """The target without the topics that the member no longer subscribes to."""
        topics = partition_counts(group.topics_of(member.subscription), self._state.catalog)
        return frozenset(each for each in target if each.topic_id in topics)

    def _maybe_begin_epoch(
        self,
        draft: Draft,
        now_ms: int,
        may_describe: Callable[[str], bool],
        subscription_changed: bool,
    ) -> None:
        group_id, version = draft.group.group_id, self._state.catalog.topics_version
        is_seen = self._state.topics_seen.get(group_id) == version
        if is_seen and not subscription_changed and not self._is_refresh_due(draft.group, now_ms):
            return
        resolved_anew = resolve_expressions(draft, self._state.catalog, now_ms, may_describe)
        topics_hash = subscribed_hash(draft.group, self._state.catalog)
        if subscription_changed or resolved_anew or topics_hash != draft.group.metadata_hash:
            draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        self._state.topics_seen[group_id] = version
        self._state.expressions_seen_ms[group_id] = now_ms

    def _is_refresh_due(self, group: ConsumerGroup, now_ms: int) -> bool:
        seen_ms = self._state.expressions_seen_ms.get(group.group_id, now_ms)
        interval_ms = self._state.config.regex_refresh_interval_ms
        return bool(group.resolved) and now_ms > seen_ms + interval_ms
