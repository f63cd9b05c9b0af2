"""Which topics and partitions a request may name."""

from typing import Final

from ottla.client.wire.cluster import Topic, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.protocol.errors import ErrorCode

RESERVED_PREFIX: Final = "__gateway"


def validate_topic(name: str) -> None:
    """Raises TOPIC_AUTHORIZATION_FAILED for a gateway topic: its readers can forge handles."""
    if name.startswith(RESERVED_PREFIX):
        raise BrokerError(ErrorCode.topic_authorization_failed, f"topic {name}")


def validate_partition(topic_partition: TopicPartition, topic: Topic) -> None:
    if topic_partition.partition not in topic.leaders:
        raise BrokerError(ErrorCode.unknown_topic_or_partition, f"partition {topic_partition}")
