"""The target assignment of a consumer group."""

from collections.abc import Mapping

from ottla.groups.assignors.range import assign_range
from ottla.groups.assignors.spec import Assignor
from ottla.groups.assignors.uniform import assign_uniform
from ottla.groups.consumer.draft import Draft
from ottla.groups.modern import target
from ottla.machine.catalog import TopicCatalog

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def write_target(draft: Draft, catalog: TopicCatalog, default_assignor: str, now_ms: int) -> None:
    assign = ASSIGNORS[draft.group.preferred_assignor(default_assignor)]
    target.write_target(draft, assign(target.group_spec(draft.group, catalog)), now_ms)
