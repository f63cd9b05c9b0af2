"""Topics, configurations and the cluster itself: what administrators view and change.

A cluster's refusal is a BrokerError with its error code; transient errors are retried.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar
from uuid import UUID

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType, alter_configs, describe_configs
from ottla.client.async_wire.reading import list_offsets
from ottla.client.async_wire.topics import delete_records
from ottla.client.wire.cluster import TopicPartition, expect_one, metadata_request
from ottla.client.wire.errors import BrokerError, validate_answer
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.client.wire.topics import BROKER_DEFAULT, create_request
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

T = TypeVar("T")

_TIMEOUT: Final = milliseconds(30_000)


CONFIG_SOURCES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "CLIENT_METRICS_CONFIG",
    8: "GROUP_CONFIG",
}


class Partition(NamedTuple):
    id: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    offline_replicas: tuple[int, ...]


class TopicDescription(NamedTuple):
    name: str
    id: UUID | None
    is_internal: bool
    partitions: tuple[Partition, ...]


class Span(NamedTuple):
    start_offset: int
    end_offset: int


class Config(NamedTuple):
    name: str
    value: str | None  # None for a secret.
    source: str
    is_default: bool
    is_read_only: bool
    is_sensitive: bool


class Broker(NamedTuple):
    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class ClusterDescription(NamedTuple):
    id: str
    controller: int | None
    brokers: tuple[Broker, ...]


class Administration:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def cluster(self) -> ClusterDescription:
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=False, include_fenced_brokers=True
        )
        found = await self._ask(request)
        validate_answer(found.error_code, "the cluster", found.error_message)
        return ClusterDescription(
            found.cluster_id,
            None if found.controller_id < 0 else found.controller_id,
            tuple(
                Broker(each.broker_id, each.host, each.port, each.rack, each.is_fenced)
                for each in found.brokers
            ),
        )

    # Topics.

    async def topics(self) -> list[TopicDescription]:
        """All topics by name."""
        response = await self._ask(metadata_request(None))
        found = [_topic(each) for each in response.topics if each.error_code is ErrorCode.none]
        return sorted(found, key=lambda topic: topic.name)

    async def topic(self, name: str) -> TopicDescription:
        async def ask() -> TopicDescription:
            response = await (await self._cluster.any_broker()).call(metadata_request([name]))
            found = expect_one(response.topics)
            validate_answer(found.error_code, f"topic {name}")
            return _topic(found)

        # A missing topic is a result here, although a producing client would ask again.
        return await self._unless_absent(ask)

    async def offsets(self, topic: TopicDescription) -> dict[int, Span]:
        """The log start and end offset of each partition."""
        topic_partitions = [TopicPartition(topic.name, each.id) for each in topic.partitions]
        starts = await list_offsets(self._cluster, dict.fromkeys(topic_partitions, EARLIEST))
        ends = await list_offsets(self._cluster, dict.fromkeys(topic_partitions, LATEST))
        return {
            topic_partition.partition: Span(
                starts[topic_partition] or 0, ends[topic_partition] or 0
            )
            for topic_partition in topic_partitions
        }

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        request = create_request(
            name,
            partitions=partitions,
            config=configs,
            replication_factor=replication_factor,
            validate_only=validate_only,
        )
        await self._change(request, lambda response: response.topics, f"topic {name}")

    async def delete_topic(self, name: str) -> None:
        state = DeleteTopicState(name=TopicName(name), topic_id=None)
        request = DeleteTopicsRequest(topics=(state,), timeout=_TIMEOUT)
        await self._change(request, lambda response: response.responses, f"topic {name}")

    async def set_partition_count(self, name: str, count: int) -> None:
        topic = CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=None)
        request = CreatePartitionsRequest(topics=(topic,), timeout=_TIMEOUT, validate_only=False)
        await self._change(request, lambda response: response.results, f"topic {name}")

    async def delete_records(self, name: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before each partition's offset; returns the new log start offsets."""
        return await delete_records(self._cluster, name, before)

    # Configurations.

    async def configs(
        self, kind: ResourceType, name: str, keys: Sequence[str] | None = None
    ) -> list[Config]:
        found = await self._unless_absent(lambda: describe_configs(self._cluster, kind, name, keys))
        return [_config(each) for each in found.values()]

    async def alter_configs(
        self, kind: ResourceType, name: str, values: Mapping[str, str | None]
    ) -> None:
        """None removes a value, so that the default applies."""
        await self._unless_absent(lambda: alter_configs(self._cluster, kind, name, values))

    # Calls.

    async def _ask(self, request: Any) -> Any:
        async def ask() -> Any:
            return await (await self._cluster.any_broker()).call(request)

        return await self._cluster.retry(ask)

    async def _change(self, request: Any, answers: Callable[[Any], Any], what: str) -> None:
        async def change() -> None:
            answer = expect_one(answers(await (await self._cluster.controller()).call(request)))
            validate_answer(answer.error_code, what, answer.error_message)

        await self._unless_absent(change)
        self._cluster.forget_metadata()

    async def _unless_absent(self, operation: Callable[[], Awaitable[T]]) -> T:
        """UNKNOWN_TOPIC_OR_PARTITION is retriable for producers, but a result here."""

        async def once() -> T | BrokerError:
            try:
                return await operation()
            except BrokerError as error:
                if error.code is not ErrorCode.unknown_topic_or_partition:
                    raise
                return error

        result = await self._cluster.retry(once)
        if isinstance(result, BrokerError):
            raise result
        return result


def _topic(found: Any) -> TopicDescription:
    return TopicDescription(
        found.name,
        found.topic_id,
        found.is_internal,
        tuple(
            Partition(
                each.partition_index,
                None if each.leader_id < 0 else each.leader_id,
                each.leader_epoch,
                tuple(each.replica_nodes),
                tuple(each.isr_nodes),
                tuple(each.offline_replicas),
            )
            for each in sorted(found.partitions, key=lambda each: each.partition_index)
        ),
    )


def _config(found: Any) -> Config:
    source = CONFIG_SOURCES.get(found.config_source, "UNKNOWN")
    return Config(
        found.name,
        found.value,
        source,
        source == "DEFAULT_CONFIG",
        found.read_only,
        found.is_sensitive,
    )
