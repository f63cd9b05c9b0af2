"""A test's topics, created and deleted with the wire client."""

import itertools
import os
from typing import Any

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.protocol.times import milliseconds

_TIMEOUT = milliseconds(120_000)

_numbers = itertools.count()


def create_topic(cluster: Cluster, partitions: int = 1, name: str = "", **config: Any) -> str:
    """Returns its name once each partition has a leader."""
    name = name or f"wire-{os.getpid()}-{next(_numbers)}"
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(1),
        assignments=(),
        configs=tuple(CreatableTopicConfig(name=key, value=config[key]) for key in config),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False)
    (created,) = cluster.any_broker().call(request).topics
    assert not created.error_code, created
    list_offsets(cluster, {TopicPartition(name, index): LATEST for index in range(partitions)})
    return name


def delete_topic(cluster: Cluster, name: str) -> None:
    state = DeleteTopicState(name=TopicName(name), topic_id=None)
    (deleted,) = (
        cluster.any_broker().call(DeleteTopicsRequest(topics=(state,), timeout=_TIMEOUT)).responses
    )
    assert not deleted.error_code, deleted
    while name in cluster.topics([name]):
        pass
