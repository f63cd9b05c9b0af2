"""How many tasks each part of a topology has, and which of its topics are missing.

A topology reads source topics, which users create, and has internal topics, which the coordinator
creates: repartition topics between its parts, and changelogs of their state. The partition count of
an internal topic follows from the sources:

    repartition topic   what the topology says; otherwise as many as the largest source of a
                        subtopology that writes to it, and as its copartition group has
    changelog           one for each task of its subtopology
"""

import enum
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, NoReturn

from kio.schema.streams_group_heartbeat.v0 import request as wire

from ottla.groups.streams.records import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupTopologyValue,
    Subtopology,
    TopicInfo,
)
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass

_TOPICS_NAMED_MAX = 3


class Status(enum.IntEnum):
    """What a member is told about its group; the values are those of the protocol."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Problem(NamedTuple):
    status: Status
    detail: str


class InternalTopic(NamedTuple):
    name: str
    partition_count: int
    replication_factor: int  # 0: the broker's default.
    configs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfiguredTopology:
    task_counts: Mapping[str, int]  # By subtopology; empty if unknown.
    missing: tuple[InternalTopic, ...] = ()
    problem: Problem | None = None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


class _Unfit(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        self.problem = Problem(status, detail)


def topology_of(topology: wire.Topology) -> StreamsGroupTopologyValue:
    """The topology that a member sent, as a record."""
    return StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=tuple(
            Subtopology(
                subtopology_id=part.subtopology_id,
                source_topics=tuple(sorted(part.source_topics)),
                source_topic_regex=(),
                state_changelog_topics=_topics(part.state_changelog_topics),
                repartition_sink_topics=tuple(sorted(part.repartition_sink_topics)),
                repartition_source_topics=_topics(part.repartition_source_topics),
                copartition_groups=tuple(
                    _copartition_group(part, group) for group in part.copartition_groups
                ),
            )
            for part in sorted(topology.subtopologies, key=lambda part: part.subtopology_id)
        ),
    )


def _topics(topics: Iterable[wire.TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(
        TopicInfo(
            name=topic.name,
            partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            topic_configs=tuple(
                KeyValue(key=pair.key, value=pair.value)
                for pair in sorted(topic.topic_configs, key=lambda pair: pair.key)
            ),
        )
        for topic in sorted(topics, key=lambda topic: topic.name)
    )


def _copartition_group(part: wire.Subtopology, group: wire.CopartitionGroup) -> CopartitionGroup:
    """The lists are sorted in the record, so the indexes change."""
    sources = sorted(part.source_topics)
    repartitions = sorted(topic.name for topic in part.repartition_source_topics)
    try:
        return CopartitionGroup(
            source_topics=tuple(
                sorted(sources.index(part.source_topics[index]) for index in group.source_topics)
            ),
            source_topic_regex=(),
            repartition_source_topics=tuple(
                sorted(
                    repartitions.index(part.repartition_source_topics[index].name)
                    for index in group.repartition_source_topics
                )
            ),
        )
    except IndexError:
        raise ApiError(
            ErrorCode.streams_invalid_topology,
            f"a copartition group of subtopology {part.subtopology_id} has topic indexes that "
            "do not exist",
        ) from None


def required_topics(topology: StreamsGroupTopologyValue) -> frozenset[str]:
    return frozenset(
        name
        for part in topology.subtopologies
        for name in (*part.sources, *(topic.name for topic in part.state_changelog_topics))
    )


def configure(topology: StreamsGroupTopologyValue, catalog: TopicCatalog) -> ConfiguredTopology:
    """ApiError if no topics could make the topology work."""
    try:
        return _Configuration(topology, catalog).configured()
    except _Unfit as unfit:
        return ConfiguredTopology(task_counts={}, problem=unfit.problem)


class _Configuration:
    def __init__(self, topology: StreamsGroupTopologyValue, catalog: TopicCatalog) -> None:
        self._parts = topology.subtopologies
        self._catalog = catalog
        self._decided: dict[str, int] = {}  # Partition counts of internal topics.

    def configured(self) -> ConfiguredTopology:
        self._require_sources()
        self._decide_repartition_topics()
        for part in self._parts:
            for group in part.copartition_groups:
                self._align(part, group)
        task_counts = {
            part.subtopology_id: max(self._count(name) for name in part.sources)
            for part in self._parts
        }
        missing = tuple(self._missing(task_counts))
        problem = None
        if missing:
            names = summarized(topic.name for topic in missing)
            problem = Problem(
                Status.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {names}"
            )
        return ConfiguredTopology(task_counts=task_counts, missing=missing, problem=problem)

    def _known(self, topic: str) -> int | None:
        return self._catalog.partition_count(topic) or self._decided.get(topic)

    def _count(self, topic: str) -> int:
        count = self._known(topic)
        assert count is not None, topic
        return count

    def _require_sources(self) -> None:
        missing = {
            name
            for part in self._parts
            for name in part.source_topics
            if not self._catalog.partition_count(name)
        }
        if missing:
            raise _Unfit(
                Status.MISSING_SOURCE_TOPICS, f"Source topics {summarized(missing)} are missing."
            )

    def _decide_repartition_topics(self) -> None:
        """Undeclared counts follow from what writes to the topic, as in Kafka.

        The first subtopology that writes to it and has a known source decides. So it may read what
        it writes.
        """
        decided = self._decided
        sources = [topic for part in self._parts for topic in part.repartition_source_topics]
        decided |= {topic.name: topic.partitions for topic in sources if topic.partitions}
        sinks = [(name, part) for part in self._parts for name in part.repartition_sink_topics]
        while open_sinks := [(name, part) for name, part in sinks if name not in decided]:
            for name, part in open_sinks:
                count = self._largest_known_source(part)
                if count is not None:
                    decided.setdefault(name, count)
            if all(name not in decided for name, _ in open_sinks):
                self._refuse(name for name, _ in open_sinks)
        strays = {topic.name for topic in sources} - decided.keys()
        if strays:
            self._refuse(strays)

    def _refuse(self, repartition_topics: Iterable[str]) -> NoReturn:
        raise ApiError(
            ErrorCode.streams_invalid_topology,
            f"nothing is written to the repartition topics {summarized(repartition_topics)}, or"
            " only what is read from them",
        )

    def _largest_known_source(self, part: Subtopology) -> int | None:
        counts = [self._decided.get(topic.name) for topic in part.repartition_source_topics]
        counts += [self._catalog.partition_count(name) for name in part.source_topics]
        return max((count for count in counts if count), default=None)

    def _align(self, part: Subtopology, group: CopartitionGroup) -> None:
        """Give the topics of the group equal partition counts, if possible."""
        repartitions = [part.repartition_source_topics[i] for i in group.repartition_source_topics]
        fixed = {part.source_topics[index] for index in group.source_topics}
        fixed.update(topic.name for topic in repartitions if topic.partitions)
        flexible = {topic.name for topic in repartitions if not topic.partitions}
        counts = {name: self._count(name) for name in sorted(fixed or flexible)}
        if fixed and len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} has {count}" for name, count in counts.items())
            raise _Unfit(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Following topics do not have the same number of partitions: {listed}",
            )
        self._decided |= dict.fromkeys(flexible, max(counts.values(), default=1))

    def _missing(self, task_counts: Mapping[str, int]) -> Iterator[InternalTopic]:
        for part in self._parts:
            sources = set(part.sources)
            for topic in part.repartition_source_topics:
                yield from self._if_missing(topic, self._decided[topic.name])
            for topic in part.state_changelog_topics:
                if topic.name not in sources:  # A source may serve as the changelog.
                    yield from self._if_missing(topic, task_counts[part.subtopology_id])

    def _if_missing(self, topic: TopicInfo, expected: int) -> Iterator[InternalTopic]:
        found = self._catalog.partition_count(topic.name)
        if not found:
            configs = tuple((pair.key, pair.value) for pair in topic.topic_configs)
            yield InternalTopic(topic.name, expected, topic.replication_factor, configs)
        elif found != expected:
            raise _Unfit(
                Status.INCORRECTLY_PARTITIONED_TOPICS,
                f"Existing topic {topic.name} has different number of partitions: expected"
                f" {expected}, found {found}",
            )


def summarized(names: Iterable[str]) -> str:
    ordered = sorted(set(names))
    shown = ", ".join(ordered[:_TOPICS_NAMED_MAX])
    more = len(ordered) - _TOPICS_NAMED_MAX
    return f"{shown}, ... ({more} more)" if more > 0 else shown
