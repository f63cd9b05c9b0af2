"""Creates the topics of the coordinators' state, on demand.

`min.insync.replicas` is what the intended replication factor allows. As long as there are fewer
replicas, as on a single broker, all of them must be in sync.
"""

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.controller.partitions import open_candidates
from ottla.groups.config import (
    OFFSETS_TOPIC_NUM_PARTITIONS,
    OFFSETS_TOPIC_REPLICATION_FACTOR,
    OFFSETS_TOPIC_SEGMENT_BYTES,
)
from ottla.groups.share.config import (
    STATE_TOPIC_MIN_ISR,
    STATE_TOPIC_NUM_PARTITIONS,
    STATE_TOPIC_REPLICATION_FACTOR,
    STATE_TOPIC_SEGMENT_BYTES,
)
from ottla.handlers.broker import Broker
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import (
    CONSUMER_OFFSETS_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from ottla.storage.config import SEGMENT_BYTES_MIN
from ottla.transactions.config import (
    TRANSACTION_STATE_LOG_MIN_ISR,
    TRANSACTION_STATE_LOG_NUM_PARTITIONS,
    TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
    TRANSACTION_STATE_LOG_SEGMENT_BYTES,
)

_CREATION_TIMEOUT_MS = 30_000
_OFFSETS_MIN_ISR = 2  # Kafka has no key for it; one of two or more replicas may always be away.
_THERE = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


async def create_internal_topic(broker: Broker, topic: str) -> None:
    """Returns once it exists. ApiError COORDINATOR_NOT_AVAILABLE if it cannot be created now."""
    live_count = max(len(open_candidates(broker.image)), 1)
    response = await broker.controller.call(
        CreateTopicsRequest(
            topics=(_LAYOUTS[topic](broker.configs.broker_values(), live_count),),
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


def _offsets_topic(values: ConfigValues, live_count: int) -> CreatableTopic:
    factor = values[OFFSETS_TOPIC_REPLICATION_FACTOR]
    return _topic(
        CONSUMER_OFFSETS_TOPIC,
        values[OFFSETS_TOPIC_NUM_PARTITIONS],
        min(factor, live_count),
        {
            "cleanup.policy": "compact",
            "segment.bytes": max(values[OFFSETS_TOPIC_SEGMENT_BYTES], SEGMENT_BYTES_MIN),
            "min.insync.replicas": min(_OFFSETS_MIN_ISR, max(factor - 1, 1)),
        },
    )


def _transactions_topic(values: ConfigValues, live_count: int) -> CreatableTopic:
    factor = values[TRANSACTION_STATE_LOG_REPLICATION_FACTOR]
    return _topic(
        TRANSACTION_STATE_TOPIC,
        values[TRANSACTION_STATE_LOG_NUM_PARTITIONS],
        min(factor, live_count),
        {
            "cleanup.policy": "compact",
            "segment.bytes": max(values[TRANSACTION_STATE_LOG_SEGMENT_BYTES], SEGMENT_BYTES_MIN),
            "unclean.leader.election.enable": "false",  # Whatever holds for others.
            "min.insync.replicas": min(values[TRANSACTION_STATE_LOG_MIN_ISR], factor),
        },
    )


def _share_state_topic(values: ConfigValues, live_count: int) -> CreatableTopic:
    """It is pruned where it is no longer needed, not compacted: see `state_records`."""
    factor = values[STATE_TOPIC_REPLICATION_FACTOR]
    return _topic(
        SHARE_GROUP_STATE_TOPIC,
        values[STATE_TOPIC_NUM_PARTITIONS],
        min(factor, live_count),
        {
            "cleanup.policy": "delete",
            "retention.ms": -1,
            "retention.bytes": -1,
            "segment.bytes": max(values[STATE_TOPIC_SEGMENT_BYTES], SEGMENT_BYTES_MIN),
            "min.insync.replicas": min(values[STATE_TOPIC_MIN_ISR], factor),
        },
    )


_LAYOUTS = {
    CONSUMER_OFFSETS_TOPIC: _offsets_topic,
    TRANSACTION_STATE_TOPIC: _transactions_topic,
    SHARE_GROUP_STATE_TOPIC: _share_state_topic,
}


def _topic(
    name: str, partition_count: int, replication_factor: int, config: dict[str, int | str]
) -> CreatableTopic:
    configs = {"compression.type": "producer", **config}
    return CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partition_count),
        replication_factor=i16(replication_factor),
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=str(value)) for name, value in configs.items()
        ),
    )
