"""Creates the topics of the coordinators' state, on demand.

`min.insync.replicas` is what the intended replication factor allows. As long as there are fewer
replicas, as on a single broker, all of them must be in sync.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

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
from ottla.protocol.config import ConfigKey, ConfigValues
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
_OFFSETS_MIN_ISR = 2
_THERE = frozenset({ErrorCode.none, ErrorCode.topic_already_exists})


class _Layout(NamedTuple):
    partition_count: ConfigKey[int]
    replication_factor: ConfigKey[int]
    segment_bytes: ConfigKey[int]
    min_isr: ConfigKey[int] | None  # None: one of two or more replicas may always be away.
    configs: Mapping[str, str]


_LAYOUTS: Final = {
    CONSUMER_OFFSETS_TOPIC: _Layout(
        OFFSETS_TOPIC_NUM_PARTITIONS,
        OFFSETS_TOPIC_REPLICATION_FACTOR,
        OFFSETS_TOPIC_SEGMENT_BYTES,
        None,  # Kafka has no key for it.
        {"cleanup.policy": "compact"},
    ),
    TRANSACTION_STATE_TOPIC: _Layout(
        TRANSACTION_STATE_LOG_NUM_PARTITIONS,
        TRANSACTION_STATE_LOG_REPLICATION_FACTOR,
        TRANSACTION_STATE_LOG_SEGMENT_BYTES,
        TRANSACTION_STATE_LOG_MIN_ISR,
        # The latter whatever holds for other topics.
        {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"},
    ),
    # It is pruned where it is no longer needed, not compacted: see `state_records`.
    SHARE_GROUP_STATE_TOPIC: _Layout(
        STATE_TOPIC_NUM_PARTITIONS,
        STATE_TOPIC_REPLICATION_FACTOR,
        STATE_TOPIC_SEGMENT_BYTES,
        STATE_TOPIC_MIN_ISR,
        {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
    ),
}


async def create_internal_topic(broker: Broker, topic: str) -> None:
    """Returns once it exists. ApiError COORDINATOR_NOT_AVAILABLE if it cannot be created now."""
    live_count = max(len(open_candidates(broker.image)), 1)
    response = await broker.controller.call(
        CreateTopicsRequest(
            topics=(_creation(topic, broker.configs.broker_values(), live_count),),
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


def _creation(topic: str, values: ConfigValues, live_count: int) -> CreatableTopic:
    layout = _LAYOUTS[topic]
    factor = values[layout.replication_factor]
    if layout.min_isr is None:
        min_isr = min(_OFFSETS_MIN_ISR, max(factor - 1, 1))
    else:
        min_isr = min(values[layout.min_isr], factor)
    configs = {
        "compression.type": "producer",
        **layout.configs,
        "segment.bytes": str(max(values[layout.segment_bytes], SEGMENT_BYTES_MIN)),
        "min.insync.replicas": str(min_isr),
    }
    return CreatableTopic(
        name=TopicName(topic),
        num_partitions=i32(values[layout.partition_count]),
        replication_factor=i16(min(factor, live_count)),
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=name, value=value) for name, value in configs.items()
        ),
    )
