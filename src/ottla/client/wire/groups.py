"""Read and write a group's committed offsets from outside the group."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.types import GroupId
from kio.static.primitive import i32, i64

from ottla.client.wire.cluster import (
    Cluster,
    CoordinatorType,
    TopicPartition,
    by_topic,
    expect_one,
)
from ottla.client.wire.errors import validate_answer
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

_NO_OFFSET = -1


def commit_offsets(
    cluster: Cluster,
    group: str,
    offsets: Mapping[TopicPartition, int],
    metadata: Mapping[TopicPartition, str] = MappingProxyType({}),
) -> None:
    """The coordinator refuses this while the group has members."""
    topics = tuple(
        OffsetCommitRequestTopic(
            name=topic,
            topic_id=None,
            partitions=tuple(
                OffsetCommitRequestPartition(
                    partition_index=i32(partition),
                    committed_offset=i64(offsets[TopicPartition(topic, partition)]),
                    committed_metadata=metadata.get(TopicPartition(topic, partition), ""),
                )
                for partition in partitions
            ),
        )
        for topic, partitions in by_topic(offsets).items()
    )
    request = OffsetCommitRequest(group_id=GroupId(group), member_id="", topics=topics)

    def commit() -> None:
        response = cluster.coordinator(CoordinatorType.GROUP, group).call(request)
        for topic in response.topics:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                validate_answer(
                    partition.error_code, f"commit of {topic_partition} for group {group}"
                )

    cluster.retry(commit)


def committed_offsets(
    cluster: Cluster, group: str, topic_partitions: Collection[TopicPartition]
) -> dict[TopicPartition, int]:
    """The committed offsets; partitions without one are left out."""
    topics = tuple(
        OffsetFetchRequestTopics(
            name=topic, topic_id=None, partition_indexes=tuple(map(i32, partitions))
        )
        for topic, partitions in by_topic(topic_partitions).items()
    )
    wanted = OffsetFetchRequestGroup(group_id=GroupId(group), topics=topics)
    request = OffsetFetchRequest(groups=(wanted,), require_stable=True)

    def fetch() -> dict[TopicPartition, int]:
        response = cluster.coordinator(CoordinatorType.GROUP, group).call(request)
        answer = expect_one(response.groups)
        validate_answer(answer.error_code, f"offsets of group {group}")
        found = {}
        for topic in answer.topics:
            for partition in topic.partitions:
                topic_partition = TopicPartition(topic.name, partition.partition_index)
                validate_answer(
                    partition.error_code, f"offset of {topic_partition} in group {group}"
                )
                if partition.committed_offset != _NO_OFFSET:
                    found[topic_partition] = partition.committed_offset
        return found

    return cluster.retry(fetch)
