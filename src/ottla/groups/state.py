"""The complete state of the coordinator of one partition of `__consumer_offsets`.

    offsets, classic_records,           replicated: changed by replay only
    consumer_groups, share_groups,
    streams_groups, what is written of
    absences
    classic_groups, topics_seen,        volatile: changed by operations, gone with the machine,
    expressions_seen_ms, timers         never seen by another coordinator

A classic group is in `classic_groups` from the first request for it on; before that only its record
or its offsets are here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import chain
from typing import Any

from ottla.groups.absences import Absences
from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.records import GroupMetadataValue
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.config import ConsumerConfig
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.group import Group
from ottla.groups.modern.group import ModernGroup
from ottla.groups.offsets.store import OffsetStore
from ottla.groups.share.config import ShareConfig
from ottla.groups.share.group import ShareGroup
from ottla.groups.streams.config import StreamsConfig
from ottla.groups.streams.group import StreamsGroup
from ottla.machine.catalog import TopicCatalog
from ottla.machine.contract import Timers
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True, kw_only=True)
class CoordinatorState:
    config: GroupConfig
    catalog: TopicCatalog
    timers: Timers
    new_uuid: Callable[[], str]  # The random part of a member id.
    consumer_config: Callable[[str], ConsumerConfig] = lambda _: ConsumerConfig()  # By group.
    share_config: Callable[[str], ShareConfig] = lambda _: ShareConfig()
    streams_config: Callable[[str], StreamsConfig] = lambda _: StreamsConfig()
    absences: Absences = field(init=False)
    offsets: OffsetStore = field(default_factory=OffsetStore, init=False)
    classic_records: dict[str, GroupMetadataValue] = field(default_factory=dict, init=False)
    consumer_groups: dict[str, ConsumerGroup] = field(default_factory=dict, init=False)
    share_groups: dict[str, ShareGroup] = field(default_factory=dict, init=False)
    streams_groups: dict[str, StreamsGroup] = field(default_factory=dict, init=False)
    classic_groups: dict[str, ClassicGroup] = field(default_factory=dict, init=False)
    # The catalog version at which a group was last compared with its topics.
    topics_seen: dict[str, int] = field(default_factory=dict, init=False)
    # When the topics of a group's regular expressions were last looked up.
    expressions_seen_ms: dict[str, int] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.absences = Absences(self.timers)

    @property
    def modern_groups(self) -> tuple[Mapping[str, ModernGroup[Any, Any]], ...]:
        """Of each type of which the coordinator assigns the groups."""
        return self.consumer_groups, self.share_groups, self.streams_groups

    def group(self, group_id: str) -> Group | None:
        for groups in self.modern_groups:
            group = groups.get(group_id)
            if group is not None:
                return group
        return self.classic_group(group_id)

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        group = self.classic_groups.get(group_id)
        if group is None:
            group = self._revived(group_id)
            if group is not None:
                self.classic_groups[group_id] = group
        return group

    def _revived(self, group_id: str) -> ClassicGroup | None:
        record = self.classic_records.get(group_id)
        if record is not None:
            return ClassicGroup.from_record(group_id, record)
        if self.offsets.knows(group_id):
            return ClassicGroup(group_id, now_ms=-1)
        return None

    def group_ids(self) -> Iterator[str]:
        """All groups, in no particular order."""
        yield from dict.fromkeys(
            chain(
                *self.modern_groups,
                self.classic_groups,
                self.classic_records,
                self.offsets.group_ids(),
            )
        )

    def has_record(self, group_id: str) -> bool:
        return any(group_id in groups for groups in (self.classic_records, *self.modern_groups))

    def forget_unused(self, group_id: str) -> None:
        """A classic group that never became real leaves nothing behind."""
        group = self.classic_groups.get(group_id)
        if group is None or not group.is_unused:
            return
        if not self.has_record(group_id) and not self.offsets.knows(group_id):
            del self.classic_groups[group_id]
