"""How a consumer group and one of its members go forward after the member was heard of.

1. The topics that members subscribe to are looked up, when a subscription or the catalog changed.
   What came out differently begins a new group epoch.
2. A group epoch that has no target assignment yet gets one.
3. The member takes a step towards its target.
"""

from ottla.groups.consumer.current_assignment import CurrentAssignmentBuilder
from ottla.groups.consumer.draft import Draft
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.consumer.subscription import resolve_expressions
from ottla.groups.consumer.target import write_target
from ottla.groups.modern.subscription import subscribed_hash
from ottla.groups.partitions import Assignment
from ottla.groups.state import CoordinatorState


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
    ) -> ConsumerMember:
        """`member` may differ from the draft's in what it holds: it came back with nothing."""
        self._maybe_begin_epoch(draft, now_ms, subscription_changed=subscription_changed)
        if draft.group.epoch > draft.group.assignment_epoch:
            default_assignor = self._state.config.consumer_assignors[0]
            write_target(draft, self._state.catalog, default_assignor)
        group = draft.group
        builder = CurrentAssignmentBuilder(
            target_epoch=group.assignment_epoch,
            target=group.target(member.member_id),
            owned=owned,
            holder=group.holder,
        )
        moved = builder.build(member)
        if moved != group.members[member.member_id]:
            draft.write(moved.assignment_record(group.group_id))
        return moved

    def _maybe_begin_epoch(self, draft: Draft, now_ms: int, *, subscription_changed: bool) -> None:
        group_id, version = draft.group.group_id, self._state.catalog.topics_version
        if not subscription_changed and self._state.topics_seen.get(group_id) == version:
            return
        resolved_anew = resolve_expressions(draft, self._state.catalog, now_ms)
        topics_hash = subscribed_hash(draft.group, self._state.catalog)
        if subscription_changed or resolved_anew or topics_hash != draft.group.metadata_hash:
            draft.write(draft.group.epoch_record(draft.group.epoch + 1, topics_hash))
        self._state.topics_seen[group_id] = version
