"""The topics that coordinators keep their state in, made when they are first needed."""

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.groups.config import (
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)
from ottla.handlers.broker import Broker
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds

_CREATION_TIMEOUT_MS = 30_000
_THERE = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


async def create_offsets_topic(broker: Broker) -> None:
    """Returns when it is there. ApiError COORDINATOR_NOT_AVAILABLE if it cannot be made now."""
    values = broker.configs.broker_values()
    live_count = len(broker.image.active_brokers())
    configs = {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(values[OFFSETS_TOPIC_SEGMENT_BYTES]),
    }
    response = await broker.controller.create_topics(
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=TopicName(broker.groups.topic),
                    num_partitions=i32(values[OFFSETS_TOPIC_NUM_PARTITIONS]),
                    replication_factor=i16(
                        min(values[OFFSETS_TOPIC_REPLICATION_FACTOR], max(live_count, 1))
                    ),
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=name, value=value)
                        for name, value in configs.items()
                    ),
                ),
            ),
            timeout=milliseconds(_CREATION_TIMEOUT_MS),
            validate_only=False,
        )
    )
    (created,) = response.topics
    if created.error_code not in _THERE:
        raise ApiError(
            ErrorCode.coordinator_not_available,
            f"{created.name} cannot be created: {created.error_message}",
        )
