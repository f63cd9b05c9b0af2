"""Records of streams groups (KIP-1071): families 17 and 19 to 23.

17 the group's epoch
19 a member and its client
20 the epoch of the target assignment
21 the target assignment of a member
22 the current assignment of a member
23 the topology
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Any, ClassVar, Self

from ottla.groups.modern.records import EpochValue, TargetAssignmentMetadataValue
from ottla.groups.record_keys import GroupKey, MemberKey
from ottla.groups.streams.tasks import TaskAssignment, Tasks, by_subtopology, tasks_of
from ottla.machine.record import ValueLayout
from ottla.protocol.entities import entity, wire


@entity
class StreamsGroupMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 17


@entity
class KeyValue(ValueLayout):
    key: str = field(metadata=wire("string"))
    value: str = field(metadata=wire("string"))


@entity
class StreamsGroupMetadataValue(EpochValue):
    # The epoch of the topology whose topics all existed and fitted; -1 otherwise.
    validated_topology_epoch: int = field(metadata=wire("int32", tag=0), default=-1)
    last_assignment_configs: tuple[KeyValue, ...] | None = field(metadata={"tag": 1}, default=None)


@entity
class StreamsGroupMemberMetadataKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 19


@entity
class Endpoint(ValueLayout):
    host: str = field(metadata=wire("string"))
    port: int = field(metadata=wire("uint16"))


@entity
class StreamsGroupMemberMetadataValue(ValueLayout):
    instance_id: str | None = field(metadata=wire("string"), default=None)
    rack_id: str | None = field(metadata=wire("string"), default=None)
    client_id: str = field(metadata=wire("string"), default="")
    client_host: str = field(metadata=wire("string"), default="")
    rebalance_timeout_ms: int = field(metadata=wire("int32"), default=-1)
    topology_epoch: int = field(metadata=wire("int32"), default=0)
    process_id: str = field(metadata=wire("string"), default="")
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


@entity
class StreamsGroupTargetAssignmentMetadataKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 20


@entity
class StreamsGroupTargetAssignmentMemberKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 21


@entity
class TaskIds(ValueLayout):
    subtopology_id: str = field(metadata=wire("string"))
    partitions: tuple[int, ...] = field(metadata=wire("int32"))


@entity
class StreamsGroupTargetAssignmentMemberValue(ValueLayout):
    active_tasks: tuple[TaskIds, ...]
    standby_tasks: tuple[TaskIds, ...]
    warmup_tasks: tuple[TaskIds, ...]

    @classmethod
    def of(cls, target: TaskAssignment) -> Self:
        return cls(
            active_tasks=_to_task_ids(target.active),
            standby_tasks=_to_task_ids(target.standby),
            warmup_tasks=_to_task_ids(target.warmup),
        )

    @property
    def target(self) -> TaskAssignment:
        return from_task_ids(self.active_tasks, self.standby_tasks, self.warmup_tasks)


@entity
class StreamsGroupCurrentMemberAssignmentKey(MemberKey):
    RECORD_TYPE: ClassVar[int] = 22


@entity
class CurrentTaskIds(ValueLayout):
    subtopology_id: str = field(metadata=wire("string"))
    partitions: tuple[int, ...] = field(metadata=wire("int32"))
    # When the member got each active task; empty means in its own epoch.
    assignment_epochs: tuple[int, ...] | None = field(metadata=wire("int32", tag=0), default=None)


@entity
class StreamsGroupCurrentMemberAssignmentValue(ValueLayout):
    member_epoch: int = field(metadata=wire("int32"))
    previous_member_epoch: int = field(metadata=wire("int32"))
    state: int = field(metadata=wire("int8"))
    active_tasks: tuple[CurrentTaskIds, ...]
    standby_tasks: tuple[CurrentTaskIds, ...]
    warmup_tasks: tuple[CurrentTaskIds, ...]
    active_tasks_pending_revocation: tuple[CurrentTaskIds, ...]
    standby_tasks_pending_revocation: tuple[CurrentTaskIds, ...]
    warmup_tasks_pending_revocation: tuple[CurrentTaskIds, ...]


@entity
class StreamsGroupTopologyKey(GroupKey):
    RECORD_TYPE: ClassVar[int] = 23


@entity
class TopicInfo(ValueLayout):
    name: str = field(metadata=wire("string"))
    partitions: int = field(metadata=wire("int32"))  # 0: as the topology requires.
    replication_factor: int = field(metadata=wire("int16"))  # 0: the broker's default.
    topic_configs: tuple[KeyValue, ...]


@entity
class CopartitionGroup(ValueLayout):
    """Topics with equal partition counts, as indexes into the lists of their subtopology."""

    source_topics: tuple[int, ...] = field(metadata=wire("int16"))
    source_topic_regex: tuple[int, ...] = field(metadata=wire("int16"))
    repartition_source_topics: tuple[int, ...] = field(metadata=wire("int16"))


@entity
class Subtopology(ValueLayout):
    subtopology_id: str = field(metadata=wire("string"))
    source_topics: tuple[str, ...] = field(metadata=wire("string"))
    source_topic_regex: tuple[str, ...] = field(metadata=wire("string"))
    state_changelog_topics: tuple[TopicInfo, ...]
    repartition_sink_topics: tuple[str, ...] = field(metadata=wire("string"))
    repartition_source_topics: tuple[TopicInfo, ...]
    copartition_groups: tuple[CopartitionGroup, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """All topics that it reads."""
        return (*self.source_topics, *(topic.name for topic in self.repartition_source_topics))


@entity
class StreamsGroupTopologyValue(ValueLayout):
    epoch: int = field(metadata=wire("int32"))
    subtopologies: tuple[Subtopology, ...]


STREAMS_FAMILIES: tuple[tuple[type[Any], type[Any]], ...] = (
    (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    (StreamsGroupTargetAssignmentMetadataKey, TargetAssignmentMetadataValue),
    (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
)

STREAMS_KEYS = tuple(key for key, _ in STREAMS_FAMILIES)


def _to_task_ids(tasks: Tasks) -> tuple[TaskIds, ...]:
    return tuple(
        TaskIds(subtopology_id=subtopology_id, partitions=partitions)
        for subtopology_id, partitions in by_subtopology(tasks).items()
    )


def from_task_ids(*roles: Iterable[TaskIds | CurrentTaskIds]) -> TaskAssignment:
    """The roles are active, standby and warm-up."""
    return TaskAssignment(
        *(tasks_of((ids.subtopology_id, ids.partitions) for ids in role) for role in roles)
    )
