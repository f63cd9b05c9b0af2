"""Maps processes to partitions, for interactive queries of a Streams application."""

from collections.abc import Iterable

from kio.schema.streams_group_heartbeat.v0.response import (
    Endpoint,
    EndpointToPartitions,
    TopicPartition,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, u16

from ottla.groups.streams.group import StreamsGroup
from ottla.groups.streams.tasks import Tasks
from ottla.machine.catalog import TopicCatalog


def partitions_by_endpoint(
    group: StreamsGroup, catalog: TopicCatalog
) -> tuple[EndpointToPartitions, ...]:
    return tuple(
        EndpointToPartitions(
            user_endpoint=Endpoint(
                host=member.user_endpoint.host, port=u16(member.user_endpoint.port)
            ),
            active_partitions=tuple(_partitions(group, member.assigned.active, catalog)),
            standby_partitions=tuple(_partitions(group, member.assigned.standby, catalog)),
        )
        for member in group.members.values()
        if member.user_endpoint is not None
    )


def _partitions(
    group: StreamsGroup, tasks: Tasks, catalog: TopicCatalog
) -> Iterable[TopicPartition]:
    """A task reads the partition with its number in every source that has one."""
    topics: dict[str, list[int]] = {}
    for part in group.topology.subtopologies if group.topology is not None else ():
        numbers = sorted(task.partition for task in tasks if task[0] == part.subtopology_id)
        for topic in part.sources:
            count = catalog.partition_count(topic) or 0
            topics.setdefault(topic, []).extend(number for number in numbers if number < count)
    for topic, partitions in sorted(topics.items()):
        if partitions:
            yield TopicPartition(
                topic=TopicName(topic), partitions=tuple(map(i32, sorted(set(partitions))))
            )
