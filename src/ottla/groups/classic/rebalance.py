"""How a classic group moves from one generation to the next.

Three timers drive it when members do not. `session` per member: the member was silent and is
removed. `join` per group: the initial delay or the rebalance timeout has passed, and the generation
begins without the members that did not rejoin. `sync` per group: members that did not ask for their
assignment are removed.
"""

from functools import partial

from kio.schema.join_group.v9.response import JoinGroupResponse
from kio.schema.sync_group.v5.response import SyncGroupResponse

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.responses import join_error, joined, sync_error
from ottla.groups.classic.state import ClassicState, can_rebalance
from ottla.groups.operation_effects import Effects
from ottla.groups.state import CoordinatorState
from ottla.machine.result import Deferred, Result
from ottla.protocol.errors import ErrorCode

# A member that has just joined sends nothing before the rebalance ends, however long that takes,
# but a client that has gone must not hold up the group forever.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000


class ClassicRebalance:
    def __init__(self, state: CoordinatorState) -> None:
        self._state = state

    def on_loaded(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            member_id, timeout_ms = member.member_id, member.session_timeout_ms
            deadline_ms = self._state.absences.begin(group.group_id, member_id, timeout_ms, now_ms)
            self.expect(group, member_id, deadline_ms)
        if len(group.members) > self._state.config.max_size:
            self.prepare(group, now_ms, Effects())  # No reply is parked yet, so it has no effects.

    # Member sessions.

    def keep_alive(
        self, group: ClassicGroup, member: ClassicMember, now_ms: int, timeout_ms: int | None = None
    ) -> None:
        timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
        self._state.absences.end(group.group_id, member.member_id)
        self.expect(group, member.member_id, now_ms + timeout_ms)

    def expect(self, group: ClassicGroup, member_id: str, deadline_ms: int) -> None:
        """Remove the member, or the pending member, unless it is heard from until then."""
        self._state.timers.schedule(
            _session_key(group.group_id, member_id),
            deadline_ms,
            partial(self._expire_session, group.group_id, member_id),
        )

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self._state.absences.end(group.group_id, member_id)
        self._state.timers.cancel(_session_key(group.group_id, member_id))

    def _expire_session(self, group_id: str, member_id: str, now_ms: int) -> Result[None]:
        effects = Effects()
        group = self._state.classic_groups.get(group_id)
        if group is not None and member_id in group.pending_members:
            self.remove_pending(group, member_id, now_ms, effects)
        elif group is not None and member_id in group.members:
            member = group.members[member_id]
            if not member.is_kept_alive_by_waiting:
                self.remove(group, member, effects)
                self.after_removal(group, now_ms, effects)
        return effects.result(None)

    # Leaving members.

    def remove(self, group: ClassicGroup, member: ClassicMember, effects: Effects) -> None:
        if member.awaiting_join is not None:
            effects.answer(member.awaiting_join, join_error(ErrorCode.unknown_member_id, ""))
        if member.awaiting_sync is not None:
            effects.answer(member.awaiting_sync, sync_error(ErrorCode.unknown_member_id))
        group.remove(member.member_id)
        self.end_session(group, member.member_id)

    def after_removal(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        if group.state in {ClassicState.STABLE, ClassicState.COMPLETING_REBALANCE}:
            self.prepare(group, now_ms, effects)
        else:
            self.maybe_complete_join(group, now_ms, effects)

    def remove_pending(
        self, group: ClassicGroup, member_id: str, now_ms: int, effects: Effects
    ) -> None:
        group.remove(member_id)
        self.end_session(group, member_id)
        self.maybe_complete_join(group, now_ms, effects)
        self._state.forget_unused(group.group_id)

    def abandon(self, group: ClassicGroup) -> None:
        """Cancel all timers of the group."""
        for member_id in (*group.members, *group.pending_members):
            self.end_session(group, member_id)
        self._state.timers.cancel(_join_key(group.group_id))
        self._state.timers.cancel(_sync_key(group.group_id))

    # Parked replies.

    def park_join(
        self, group: ClassicGroup, member: ClassicMember, effects: Effects
    ) -> Deferred[JoinGroupResponse]:
        """A client that asks again has given up its first request, which is then answered."""
        self._state.absences.end(group.group_id, member.member_id)
        if member.awaiting_join is not None:
            effects.answer(
                member.awaiting_join,
                join_error(ErrorCode.rebalance_in_progress, member.member_id),
            )
        reply = Deferred[JoinGroupResponse]()
        group.await_join(member, reply)
        return reply

    def park_sync(self, member: ClassicMember, effects: Effects) -> Deferred[SyncGroupResponse]:
        if member.awaiting_sync is not None:
            effects.answer(member.awaiting_sync, sync_error(ErrorCode.rebalance_in_progress))
        member.awaiting_sync = Deferred()
        return member.awaiting_sync

    # Transitions between generations.

    def prepare_or_complete(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        if can_rebalance(group.state):
            self.prepare(group, now_ms, effects)
        else:
            self.maybe_complete_join(group, now_ms, effects)

    def prepare(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Ask every member to rejoin; they learn of it with their next heartbeat."""
        if group.state is ClassicState.COMPLETING_REBALANCE:
            self._send_syncs_away(group, now_ms, effects)
        group.pending_syncs.clear()
        self._state.timers.cancel(_sync_key(group.group_id))
        is_initial = group.is_empty
        group.transition_to(ClassicState.PREPARING_REBALANCE, now_ms)
        if is_initial:
            delay_ms = self._state.config.initial_rebalance_delay_ms
            end_ms = now_ms + max(delay_ms, group.rebalance_timeout_ms)
            self._schedule_initial_join(group, now_ms + delay_ms, end_ms)
        elif group.have_all_joined:
            self.complete_join(group, now_ms, effects)
        else:
            self._schedule_join(group, now_ms)

    def _send_syncs_away(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        for member in group.members.values():
            member.assignment = b""
            if member.awaiting_sync is not None:
                effects.answer(member.awaiting_sync, sync_error(ErrorCode.rebalance_in_progress))
                member.awaiting_sync = None
                self.keep_alive(group, member, now_ms)

    def maybe_complete_join(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """The initial rebalance ends only by its timer, so that more members can join."""
        if group.state is not ClassicState.PREPARING_REBALANCE:
            return
        if group.previous_state is not ClassicState.EMPTY and group.have_all_joined:
            self.complete_join(group, now_ms, effects)

    def complete_join(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        """Begin the next generation with the members that have rejoined.

        A static member stays in the group until its session ends, even if it did not rejoin.
        """
        self._state.timers.cancel(_join_key(group.group_id))
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                self.remove(group, member, effects)
        if group.members and not group.elect_joined_leader():
            self._schedule_join(group, now_ms)
            return
        group.begin_generation(now_ms)
        if group.is_empty:
            effects.records.append(group.to_record())
        else:
            self._answer_joins(group, now_ms, effects)

    def _answer_joins(self, group: ClassicGroup, now_ms: int, effects: Effects) -> None:
        for member in group.members.values():
            if member.awaiting_join is not None:
                leads = group.is_leader(member.member_id)
                effects.answer(
                    member.awaiting_join, joined(group, member.member_id, with_members=leads)
                )
                group.end_join(member)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
            self.keep_alive(group, member, now_ms)
        self._schedule_sync(group, now_ms)

    # Group timers.

    def _schedule_join(self, group: ClassicGroup, now_ms: int) -> None:
        self._state.timers.schedule(
            _join_key(group.group_id),
            now_ms + group.rebalance_timeout_ms,
            partial(self._expire_join, group.group_id),
        )

    def _expire_join(self, group_id: str, now_ms: int) -> Result[None]:
        effects = Effects()
        group = self._state.classic_groups.get(group_id)
        if group is not None and group.state is ClassicState.PREPARING_REBALANCE:
            self.complete_join(group, now_ms, effects)
        return effects.result(None)

    def _schedule_initial_join(self, group: ClassicGroup, deadline_ms: int, end_ms: int) -> None:
        self._state.timers.schedule(
            _join_key(group.group_id),
            deadline_ms,
            partial(self._expire_initial_delay, group.group_id, end_ms),
        )

    def _expire_initial_delay(self, group_id: str, end_ms: int, now_ms: int) -> Result[None]:
        """Each new member restarts the delay, up to the rebalance timeout.

        Kafka checks only when a whole delay is over, so two members wait for two.
        """
        group = self._state.classic_groups.get(group_id)
        if group is not None:
            delay_ms = self._state.config.initial_rebalance_delay_ms
            deadline_ms = min(group.last_added_ms + delay_ms, end_ms)
            if now_ms < deadline_ms:
                self._schedule_initial_join(group, deadline_ms, end_ms)
                return Result(None)
        return self._expire_join(group_id, now_ms)

    def _schedule_sync(self, group: ClassicGroup, now_ms: int) -> None:
        self._state.timers.schedule(
            _sync_key(group.group_id),
            now_ms + group.rebalance_timeout_ms,
            partial(self._expire_sync, group.group_id, group.generation),
        )

    def _expire_sync(self, group_id: str, generation: int, now_ms: int) -> Result[None]:
        effects = Effects()
        group = self._state.classic_groups.get(group_id)
        if group is not None and group.generation == generation and group.pending_syncs:
            for member_id in sorted(group.pending_syncs):
                self.remove(group, group.members[member_id], effects)
            self.prepare(group, now_ms, effects)
        return effects.result(None)

    def on_synced(self, group: ClassicGroup, member_id: str) -> None:
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self._state.timers.cancel(_sync_key(group.group_id))


def _session_key(group_id: str, member_id: str) -> str:
    return f"classic/session/{group_id}/{member_id}"


def _join_key(group_id: str) -> str:
    return f"classic/join/{group_id}"


def _sync_key(group_id: str) -> str:
    return f"classic/sync/{group_id}"
