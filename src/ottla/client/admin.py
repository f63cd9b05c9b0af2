"""Inspect and administer a cluster."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as RawPartition
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from ottla.client.config import ClientConfig
from ottla.protocol.topics import TopicPartition

T = TypeVar("T")

TIMEOUT_S = 60.0
BROKER_DEFAULT = -1
_SCRAM_ITERATIONS = 8192


class PartitionInfo(NamedTuple):
    leader: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]


class NodeInfo(NamedTuple):
    node_id: int
    host: str
    port: int


class ClusterInfo(NamedTuple):
    cluster_id: str
    controller_id: int
    nodes: tuple[NodeInfo, ...]


class GroupInfo(NamedTuple):
    group_id: str
    state: str
    members: tuple[str, ...]  # Client ids.


class Admin:
    """`Admin(config)` or `Admin(bootstrap_servers=...)`. Methods raise KafkaException."""

    def __init__(self, config: ClientConfig | None = None, **settings: Any) -> None:
        self.config = ClientConfig.of(config, settings)
        self.raw = AdminClient(self.config.settings())  # The confluent-kafka client.

    # Topics.

    def topics(self) -> list[str]:
        """All topics except internal ones."""
        return sorted(name for name in self._metadata().topics if not name.startswith("__"))

    def partitions(self, topic: str) -> dict[int, PartitionInfo]:
        found = self._metadata(topic).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return {
            number: PartitionInfo(each.leader, tuple(each.replicas), tuple(each.isrs))
            for number, each in sorted(found.partitions.items())
        }

    def create_topic(
        self,
        name: str,
        partitions: int = BROKER_DEFAULT,
        *,
        replication_factor: int = BROKER_DEFAULT,
        config: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
    ) -> None:
        topic = NewTopic(name, partitions, replication_factor, config=dict(config or {}))
        accepted = KafkaError.TOPIC_ALREADY_EXISTS if if_not_exists else None
        _result(self.raw.create_topics([topic])[name], accepted)

    def delete_topic(self, name: str, *, if_exists: bool = False) -> None:
        accepted = KafkaError.UNKNOWN_TOPIC_OR_PART if if_exists else None
        _result(self.raw.delete_topics([name])[name], accepted)

    def add_partitions(self, topic: str, total: int) -> None:
        """Raise the number of partitions to `total`."""
        _result(self.raw.create_partitions([NewPartitions(topic, total)])[topic])

    def end_offsets(self, topic: str) -> dict[TopicPartition, int]:
        """The offset of the next record, by partition."""
        partitions = [TopicPartition(topic, number) for number in self.partitions(topic)]
        return self._end_offsets(partitions)

    # Configs of one topic, broker or group.

    def configs(self, /, **resource: str) -> dict[str, str | None]:
        """`configs(topic="orders")`: all values, explicit and default."""
        wanted = _resource(resource)
        entries = _result(self.raw.describe_configs([wanted])[wanted])
        return {name: entry.value for name, entry in sorted(entries.items())}

    def set_configs(self, values: Mapping[str, str | None], /, **resource: str) -> None:
        """None resets a key to its default."""
        wanted = _resource(resource)
        for name, value in values.items():
            change = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
            wanted.add_incremental_config(ConfigEntry(name, value, incremental_operation=change))
        _result(self.raw.incremental_alter_configs([wanted])[wanted])

    # Groups and their offsets.

    def groups(self) -> list[str]:
        listing = _result(self.raw.list_consumer_groups())
        if listing.errors:
            raise listing.errors[0]
        return sorted(group.group_id for group in listing.valid)

    def group(self, group_id: str) -> GroupInfo:
        found = _result(self.raw.describe_consumer_groups([group_id])[group_id])
        members = tuple(member.client_id for member in found.members)
        return GroupInfo(group_id, found.state.name.lower(), members)

    def delete_group(self, group_id: str) -> None:
        _result(self.raw.delete_consumer_groups([group_id])[group_id])

    def offsets(self, group_id: str) -> dict[TopicPartition, int]:
        """The group's committed offsets."""
        request = [ConsumerGroupTopicPartitions(group_id)]
        found = _result(self.raw.list_consumer_group_offsets(request)[group_id])
        return {
            TopicPartition(each.topic, each.partition): each.offset
            for each in found.topic_partitions or ()
            if each.offset >= 0
        }

    def set_offsets(self, group_id: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """The group must have no members."""
        partitions = [RawPartition(*partition, offset) for partition, offset in offsets.items()]
        request = [ConsumerGroupTopicPartitions(group_id, partitions)]
        found = _result(self.raw.alter_consumer_group_offsets(request)[group_id])
        for each in found.topic_partitions or ():
            if each.error is not None:
                raise KafkaException(each.error)

    def lag(self, group_id: str) -> dict[TopicPartition, int]:
        """The distance from the committed offset to the end of each partition."""
        committed = self.offsets(group_id)
        ends = self._end_offsets(committed)
        return {
            partition: max(0, ends[partition] - offset) for partition, offset in committed.items()
        }

    # Users and ACLs.

    def users(self) -> list[str]:
        return sorted(_result(self.raw.describe_user_scram_credentials()))

    def set_user(self, name: str, password: str, mechanism: str = "SCRAM-SHA-512") -> None:
        """Create the user, or change its password."""
        kind = ScramMechanism[mechanism.upper().replace("-", "_")]
        info = ScramCredentialInfo(kind, _SCRAM_ITERATIONS)
        change = UserScramCredentialUpsertion(name, info, password.encode())
        _result(self.raw.alter_user_scram_credentials([change])[name])

    def delete_user(self, name: str) -> None:
        described: Any = self.raw.describe_user_scram_credentials([name])
        known = _result(described[name])
        for info in known.scram_credential_infos:
            change = UserScramCredentialDeletion(name, info.mechanism)
            _result(self.raw.alter_user_scram_credentials([change])[name])

    def acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        return list(_result(self.raw.describe_acls(wanted)))

    def add_acls(self, acls: Iterable[AclBinding]) -> None:
        for future in self.raw.create_acls(list(acls)).values():
            _result(future)

    def delete_acls(self, wanted: AclBindingFilter) -> list[AclBinding]:
        """Delete all matching ACLs and return them."""
        return list(_result(self.raw.delete_acls([wanted])[wanted]))

    # The cluster.

    def cluster(self) -> ClusterInfo:
        found = _result(self.raw.describe_cluster())
        nodes = tuple(NodeInfo(node.id, node.host, node.port) for node in found.nodes)
        controller_id = -1 if found.controller is None else found.controller.id
        return ClusterInfo(found.cluster_id, controller_id, tuple(sorted(nodes)))

    def _metadata(self, topic: str | None = None) -> Any:
        return self.raw.list_topics(topic, timeout=TIMEOUT_S)

    def _end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        wanted = {RawPartition(*partition): OffsetSpec.latest() for partition in partitions}
        if not wanted:
            return {}
        level = IsolationLevel.READ_UNCOMMITTED
        found = self.raw.list_offsets(wanted, isolation_level=level)
        return {
            TopicPartition(partition.topic, partition.partition): _result(future).offset
            for partition, future in found.items()
        }


def _resource(named: Mapping[str, str]) -> ConfigResource:
    if len(named) != 1:
        raise TypeError('name one thing, as in configs(topic="orders")')
    ((kind, name),) = named.items()
    return ConfigResource(ResourceType[kind.upper()], name)


def _result(future: "Future[T] | Any", accepted: int | None = None) -> Any:
    """An error with the code `accepted` counts as success."""
    try:
        return future.result(TIMEOUT_S)
    except KafkaException as failure:
        if accepted is None or failure.args[0].code() != accepted:
            raise
        return None
