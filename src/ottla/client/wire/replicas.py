"""Requests that move the replicas and the leaders of partitions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32

from ottla.client.wire.cluster import by_topic
from ottla.protocol.topics import TopicPartition

_PREFERRED: Final = i8(0)


def reassign_request(
    wanted: Mapping[TopicPartition, Sequence[int] | None],
) -> AlterPartitionReassignmentsRequest:
    """The replicas, the preferred leader first; None takes a reassignment back."""

    def target(topic_partition: TopicPartition) -> ReassignablePartition:
        replicas = wanted[topic_partition]
        return ReassignablePartition(
            partition_index=i32(topic_partition.partition),
            replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
        )

    return AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(target(TopicPartition(topic, index)) for index in indexes),
            )
            for topic, indexes in by_topic(wanted).items()
        ),
    )


def elect_request(topic_partitions: Collection[TopicPartition] | None) -> ElectLeadersRequest:
    """Let the preferred leaders lead, of these partitions or of all."""
    wanted = None
    if topic_partitions is not None:
        wanted = tuple(
            TopicPartitions(topic=TopicName(topic), partitions=tuple(map(i32, indexes)))
            for topic, indexes in by_topic(topic_partitions).items()
        )
    return ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=wanted)
