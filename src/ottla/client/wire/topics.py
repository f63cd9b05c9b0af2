"""Create topics and look up their configs."""

from collections.abc import Mapping
from typing import Any

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.configs import TOPIC, describe_request
from ottla.client.wire.errors import validate_answer
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

BROKER_DEFAULT = -1

_TIMEOUT_MS = 30_000


def ensure_topic(
    cluster: Cluster,
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
    replication_factor: int = BROKER_DEFAULT,
) -> None:
    """Create the topic unless it exists; an existing one is left unchanged."""
    if name in cluster.topics([name]):
        return
    request = create_request(
        name, partitions=partitions, config=config, replication_factor=replication_factor
    )
    cluster.retry(lambda: validate_created(cluster.controller().call(request)))


def topic_config(cluster: Cluster, name: str, key: str) -> str:
    """The value, explicit or default; empty if there is none."""
    request = describe_request(TOPIC, [name], (key,))
    (result,) = cluster.retry(lambda: cluster.any_broker().call(request)).results
    validate_answer(result.error_code, f"the configuration of topic {name}")
    return next((config.value or "" for config in result.configs), "")


def create_request(
    name: str,
    *,
    partitions: int = BROKER_DEFAULT,
    config: Mapping[str, str] | None = None,
    replication_factor: int = BROKER_DEFAULT,
    validate_only: bool = False,
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replication_factor),
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in (config or {}).items()
        ),
    )
    return CreateTopicsRequest(
        topics=(topic,), timeout=milliseconds(_TIMEOUT_MS), validate_only=validate_only
    )


def partitions_request(topic: str, count: int) -> CreatePartitionsRequest:
    """`count` is that of all its partitions."""
    wanted = CreatePartitionsTopic(name=TopicName(topic), count=i32(count), assignments=None)
    return CreatePartitionsRequest(
        topics=(wanted,), timeout=milliseconds(_TIMEOUT_MS), validate_only=False
    )


def validate_created(response: Any) -> None:
    """An existing topic is no error."""
    for created in response.topics:
        if created.error_code is not ErrorCode.topic_already_exists:
            validate_answer(created.error_code, f"topic {created.name}", created.error_message)
