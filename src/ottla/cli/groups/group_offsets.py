"""The offsets of a group, of whichever type it is, to read and to move."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import confluent_kafka
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, OffsetSpec

from ottla.cli.connection import Connection, describe_error
from ottla.cli.errors import CommandError
from ottla.cli.groups.share_groups import alter_share_offsets, find_share_group, share_offsets
from ottla.protocol.topics import TopicPartition

Offsets = Mapping[TopicPartition, int]


class GroupOffsets(Protocol):
    member_count: int

    def read(self) -> Offsets: ...

    def write(self, offsets: Offsets) -> None:
        """Only for a group without members."""


def offsets_of(connection: Connection, admin: AdminClient, group: str) -> GroupOffsets:
    """A group that does not exist yet is a consumer group."""
    described = connection.result(admin.describe_consumer_groups([group])[group], of=group)
    if described.state is ConsumerGroupState.DEAD:
        share_group = find_share_group(connection, group)
        if share_group is not None:
            return ShareGroupOffsets(connection, group, len(share_group.members))
    return ConsumerGroupOffsets(connection, admin, group, len(described.members))


@dataclass
class ConsumerGroupOffsets:
    connection: Connection
    admin: AdminClient
    group: str
    member_count: int

    def read(self) -> Offsets:
        futures = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(self.group)])
        found = self.connection.result(futures[self.group], of=self.group)
        return {
            _named(topic_partition): topic_partition.offset
            for topic_partition in found.topic_partitions
            if topic_partition.offset >= 0
        }

    def write(self, offsets: Offsets) -> None:
        topic_partitions = [
            confluent_kafka.TopicPartition(*topic_partition, offset)
            for topic_partition, offset in offsets.items()
        ]
        request = ConsumerGroupTopicPartitions(self.group, topic_partitions)
        futures = self.admin.alter_consumer_group_offsets([request])
        altered = self.connection.result(futures[self.group], of=self.group)
        for topic_partition in altered.topic_partitions:
            if topic_partition.error is not None:
                raise CommandError(
                    describe_error(topic_partition.error, str(_named(topic_partition)))
                )


@dataclass
class ShareGroupOffsets:
    connection: Connection
    group: str
    member_count: int

    def read(self) -> Offsets:
        found = share_offsets(self.connection, self.group)
        return {topic_partition: offset.start_offset for topic_partition, offset in found.items()}

    def write(self, offsets: Offsets) -> None:
        alter_share_offsets(self.connection, self.group, offsets)


def partition_offsets(
    connection: Connection,
    admin: AdminClient,
    topic_partitions: Collection[TopicPartition],
    spec: OffsetSpec,
) -> Offsets:
    """What the partitions themselves have, as at their ends."""
    if not topic_partitions:
        return {}
    futures = admin.list_offsets(
        {confluent_kafka.TopicPartition(*each): spec for each in topic_partitions}
    )
    return {
        _named(asked): connection.result(future, of=asked.topic).offset
        for asked, future in futures.items()
    }


def _named(topic_partition: confluent_kafka.TopicPartition) -> TopicPartition:
    return TopicPartition(topic_partition.topic, topic_partition.partition)
