"""The input of assignors, and the assignors by name.

An assignor sees each member's subscription and its previous target. It assigns every partition of a
subscribed topic to exactly one of the members that subscribe to it.
"""

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from ottla.groups.partitions import NOTHING, Assignment
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class MemberSpec:
    topic_ids: frozenset[UUID]  # Subscribed topics that exist.
    previous: Assignment = NOTHING
    instance_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    members: Mapping[str, MemberSpec]
    partition_counts: Mapping[UUID, int]  # For every subscribed topic.


class Assignor(Protocol):
    def __call__(self, spec: GroupSpec) -> dict[str, Assignment]:
        """The target assignment of every member."""
