"""Streams groups in the protocol's own words: librdkafka's admin client does not know them."""

from kio.schema.streams_group_describe.v0.request import StreamsGroupDescribeRequest
from kio.schema.streams_group_describe.v0.response import DescribedGroup, Member
from kio.schema.types import GroupId

from ottla.cli.broker_call import find_group
from ottla.cli.connection import Connection
from ottla.protocol.topics import TopicPartition


def find_streams_group(connection: Connection, group: str) -> DescribedGroup | None:
    request = StreamsGroupDescribeRequest(
        group_ids=(GroupId(group),), include_authorized_operations=False
    )
    found: DescribedGroup | None = find_group(connection, group, request)
    return found


def readers(group: DescribedGroup) -> dict[TopicPartition, Member]:
    """Who reads which partition: a task reads the partition of its number of every source."""
    parts = group.topology.subtopologies if group.topology is not None else None
    sources = {
        part.subtopology_id: (
            *part.source_topics,
            *(topic.name for topic in part.repartition_source_topics),
        )
        for part in parts or ()
    }
    return {
        TopicPartition(topic, int(partition)): member
        for member in group.members
        for tasks in member.assignment.active_tasks
        for topic in sources.get(tasks.subtopology_id, ())
        for partition in tasks.partitions
    }
