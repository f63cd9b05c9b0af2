"""A summary of groups for operators. Read-only, so that another thread may call it."""

from collections.abc import Iterator
from typing import NamedTuple

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.state import ClassicState
from ottla.groups.state import CoordinatorState


class GroupOverview(NamedTuple):
    group_id: str
    type_name: str
    state_name: str
    members_count: int
    generation: int  # Increases with each rebalance.


def overview(state: CoordinatorState) -> Iterator[GroupOverview]:
    for groups in state.modern_groups:
        for group in groups.values():
            members_count = len(group.members)
            yield GroupOverview(
                group.group_id, group.type_name, group.state_name, members_count, group.epoch
            )
    for group_id in dict.fromkeys(
        (*state.classic_groups, *state.classic_records, *state.offsets.group_ids())
    ):
        if group_id not in state.consumer_groups and group_id not in state.streams_groups:
            yield _classic(state, group_id)


def _classic(state: CoordinatorState, group_id: str) -> GroupOverview:
    group, record = state.classic_groups.get(group_id), state.classic_records.get(group_id)
    state_name, members_count, generation = ClassicState.EMPTY.value, 0, 0
    if group is not None:
        state_name, generation = group.state_name, group.generation
        members_count = len(group.members)
    elif record is not None:
        members_count, generation = len(record.members), record.generation
        state_name = ClassicState.STABLE.value if record.members else state_name
    return GroupOverview(group_id, ClassicGroup.type_name, state_name, members_count, generation)
