"""Handles returning static members (KIP-345).

The instance is the same, the process behind it is new: it gets a new member id, and the old one is
fenced. If it fits the current generation, the group carries on without a rebalance.
"""

import dataclasses

from kio.schema.join_group.v9.response import JoinGroupResponse

from ottla.groups.caller import Caller
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.rebalance import ClassicRebalance
from ottla.groups.classic.responses import join_error, joined, sync_error
from ottla.groups.classic.state import ClassicState
from ottla.groups.operation_effects import Effects
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode

_SKIP_ASSIGNMENT_SINCE = 9


class StaticMembers:
    def __init__(self, rebalance: ClassicRebalance) -> None:
        self._rebalance = rebalance

    def replace(
        self, group: ClassicGroup, member: ClassicMember, caller: Caller, now_ms: int
    ) -> Result[JoinGroupResponse]:
        effects = Effects()
        assert member.group_instance_id is not None
        old = group.members[group.static_members[member.group_instance_id]]
        leader_before = group.leader
        self._fence(group, old, effects)
        member.assignment, member.is_new = old.assignment, False
        group.replace_static(old.member_id, member)
        self._rebalance.keep_alive(group, member, now_ms)
        if group.state is ClassicState.STABLE and group.select_protocol() == group.protocol:
            group.refresh_subscription()
            effects.records.append(group.to_record())
            return effects.result(_welcomed_back(group, member, leader_before or "", caller))
        parked = self._rebalance.park_join(group, member, effects)
        self._rebalance.prepare_or_complete(group, now_ms, effects)
        return effects.result(parked)

    def _fence(self, group: ClassicGroup, old: ClassicMember, effects: Effects) -> None:
        fenced = ErrorCode.fenced_instance_id
        if old.awaiting_join is not None:
            effects.answer(old.awaiting_join, join_error(fenced, old.member_id))
        if old.awaiting_sync is not None:
            effects.answer(old.awaiting_sync, sync_error(fenced))
        self._rebalance.end_session(group, old.member_id)


def _welcomed_back(
    group: ClassicGroup, member: ClassicMember, leader_before: str, caller: Caller
) -> JoinGroupResponse:
    """Keeps the leader from making an assignment; old clients by naming another as the leader."""
    leads = group.is_leader(member.member_id)
    if caller.api_version >= _SKIP_ASSIGNMENT_SINCE:
        return joined(group, member.member_id, with_members=leads, skip_assignment=leads)
    response = joined(group, member.member_id, with_members=False)
    return dataclasses.replace(response, leader=leader_before)
