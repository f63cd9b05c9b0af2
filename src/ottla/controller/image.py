"""The cluster metadata, built from the records so far.

Every node has an image that is fed with committed records; the controller has one that is fed right
after the append. Only `replay` changes an image. The state of a broker or a partition is its
record, with later changes merged, so an image is read and never converted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, fields, replace
from typing import Any, Final
from uuid import UUID

from kio.schema.types import ProducerId, TopicName
from kio.static.primitive import f64, i8, i16, i32, i64

from ottla.controller.records import (
    FENCE,
    IN_CONTROLLED_SHUTDOWN,
    LEADER_UNCHANGED,
    NO_CHANGE,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    QuotaEntityData,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    UserScramCredentialRecord,
)
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topic_names import collision_key
from ottla.security.acl_index import AclIndex
from ottla.security.acls import AclBinding, Operation, PatternType, Permission, ResourceType
from ottla.security.delegation_tokens import DelegationToken
from ottla.security.principal import Principal
from ottla.security.quotas import Entity, entity_of
from ottla.security.scram import ScramCredential, ScramMechanism

TOPIC_RESOURCE: Final = i8(2)
BROKER_RESOURCE: Final = i8(4)
CLIENT_METRICS_RESOURCE: Final = i8(16)
GROUP_RESOURCE: Final = i8(32)

_NO_ID: Final = UUID(int=0)

ConfigResource = tuple[int, str]  # Type and name; for brokers their id, or "" for all.


@dataclass(slots=True)
class TopicImage:
    name: TopicName
    topic_id: UUID
    # Invariant: the keys are 0 to n - 1, in this order.
    partitions: dict[int, PartitionRecord] = field(default_factory=dict)


@dataclass(slots=True)
class MetadataImage:
    """Implements `machine.catalog.TopicCatalog`. Readers must not modify what they get."""

    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[UUID, TopicImage] = field(default_factory=dict)
    topic_by_collision_key: dict[str, str] = field(default_factory=dict)
    brokers: dict[int, RegisterBrokerRecord] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    features: dict[str, i16] = field(default_factory=dict)  # Those ever written.
    producer_ids: ProducerIdsRecord | None = None
    # By user and mechanism, in order of creation.
    scram_credentials: dict[tuple[str, int], ScramCredential] = field(default_factory=dict)
    delegation_tokens: dict[str, DelegationToken] = field(default_factory=dict)  # By id.
    acls: AclIndex = field(default_factory=AclIndex)
    client_quotas: dict[Entity, dict[str, float]] = field(default_factory=dict)
    topics_version: int = field(default=0, compare=False)  # Increases with topics and partitions.
    configs_version: int = field(default=0, compare=False)  # Increases with configs.

    def partition(self, topic: str, index: int) -> PartitionRecord | None:
        found = self.topics.get(topic)
        return None if found is None else found.partitions.get(index)

    def topic_by_id(self, topic_id: UUID) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def topic_configs(self, topic: str) -> dict[str, str]:
        return self.configs.get((TOPIC_RESOURCE, topic), {})

    def broker_configs(self, broker_id: int) -> dict[str, str]:
        return self.configs.get((BROKER_RESOURCE, str(broker_id)), {})

    def default_broker_configs(self) -> dict[str, str]:
        return self.configs.get((BROKER_RESOURCE, ""), {})

    def group_configs(self, group_id: str) -> dict[str, str]:
        return self.configs.get((GROUP_RESOURCE, group_id), {})

    def client_metrics_configs(self, subscription: str) -> dict[str, str]:
        return self.configs.get((CLIENT_METRICS_RESOURCE, subscription), {})

    def active_brokers(self) -> list[RegisterBrokerRecord]:
        """The brokers that may lead partitions, by id."""
        return [
            broker
            for _, broker in sorted(self.brokers.items())
            if not broker.fenced and not broker.in_controlled_shutdown
        ]

    @property
    def next_producer_id(self) -> ProducerId:
        return ProducerId(0) if self.producer_ids is None else self.producer_ids.next_producer_id

    def topic_names(self) -> Iterable[str]:
        return self.topics.keys()

    def topic_id(self, name: str) -> UUID | None:
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def topic_name(self, topic_id: UUID) -> str | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def partition_count(self, name: str) -> int | None:
        topic = self.topics.get(name)
        return None if topic is None else len(topic.partitions)

    def replay(self, record: object) -> None:
        _REPLAY[type(record)](self, record)

    def replace_with(self, other: "MetadataImage") -> None:
        """Take over the other's content, so that references to this image stay valid."""
        version = self.topics_version + 1
        acls = self.acls  # The authorizer holds a reference.
        acls.replace_with(other.acls)
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))
        self.topics_version = version
        self.acls = acls

    def snapshot(self) -> Iterator[MetadataRecord]:
        """Records that, replayed into an empty image, reproduce this one."""
        for feature, level in self.features.items():
            yield FeatureLevelRecord(name=feature, feature_level=level)
        yield from self.brokers.values()
        for topic in self.topics.values():
            yield TopicRecord(name=topic.name, topic_id=topic.topic_id)
            yield from topic.partitions.values()
        for (resource_type, resource_name), values in self.configs.items():
            for name, value in values.items():
                yield ConfigRecord(
                    resource_type=i8(resource_type),
                    resource_name=resource_name,
                    name=name,
                    value=value,
                )
        if self.producer_ids is not None:
            yield self.producer_ids
        for (user, mechanism), credential in self.scram_credentials.items():
            yield scram_record(user, ScramMechanism(mechanism), credential)
        yield from map(token_record, self.delegation_tokens.values())
        for acl_id, acl in self.acls.items():
            yield acl_record(acl_id, acl)
        for entity, bounds in self.client_quotas.items():
            for key, bound in bounds.items():
                yield quota_record(entity, key, bound)


def quota_record(entity: Entity, key: str, bound: float | None) -> ClientQuotaRecord:
    """Without a bound, the record removes the quota."""
    return ClientQuotaRecord(
        entity=tuple(QuotaEntityData(entity_type=kind, entity_name=name) for kind, name in entity),
        key=key,
        value=f64(bound or 0.0),
        remove=bound is None,
    )


def scram_record(
    user: str, mechanism: ScramMechanism, credential: ScramCredential
) -> UserScramCredentialRecord:
    return UserScramCredentialRecord(
        name=user,
        mechanism=i8(mechanism),
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=i32(credential.iterations),
    )


def token_record(token: DelegationToken) -> DelegationTokenRecord:
    return DelegationTokenRecord(
        owner=str(token.owner),
        requester=str(token.requester),
        renewers=tuple(map(str, token.renewers)),
        issue_timestamp=i64(token.issued_ms),
        max_timestamp=i64(token.max_ms),
        expiration_timestamp=i64(token.expires_ms),
        token_id=token.token_id,
    )


def acl_record(acl_id: UUID, acl: AclBinding) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=i8(acl.resource_type),
        resource_name=acl.resource_name,
        pattern_type=i8(acl.pattern_type),
        principal=str(acl.principal),
        host=acl.host,
        operation=i8(acl.operation),
        permission_type=i8(acl.permission),
    )


def merge_partition(partition: PartitionRecord, change: PartitionChangeRecord) -> PartitionRecord:
    """Every change raises the partition epoch; naming a leader also raises the leader epoch."""
    changes: dict[str, Any] = {
        name: value for name in _MERGED_WHEN_PRESENT if (value := getattr(change, name)) is not None
    }
    if change.leader != LEADER_UNCHANGED:
        changes["leader"] = change.leader
        changes["leader_epoch"] = i32(partition.leader_epoch + 1)
    if change.leader_recovery_state != -1:
        changes["leader_recovery_state"] = change.leader_recovery_state
    return replace(partition, partition_epoch=i32(partition.partition_epoch + 1), **changes)


_MERGED_WHEN_PRESENT: Final = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "directories",
)


def _replay_topic(image: MetadataImage, record: TopicRecord) -> None:
    topic = TopicImage(record.name, record.topic_id)
    image.topics[record.name] = topic
    image.topics_by_id[record.topic_id] = topic
    image.topic_by_collision_key[collision_key(record.name)] = record.name
    image.topics_version += 1


def _replay_partition(image: MetadataImage, record: PartitionRecord) -> None:
    image.topics_by_id[record.topic_id].partitions[record.partition_id] = record
    image.topics_version += 1


def _replay_partition_change(image: MetadataImage, record: PartitionChangeRecord) -> None:
    partitions = image.topics_by_id[record.topic_id].partitions
    partitions[record.partition_id] = merge_partition(partitions[record.partition_id], record)


def _replay_remove_topic(image: MetadataImage, record: RemoveTopicRecord) -> None:
    topic = image.topics_by_id.pop(record.topic_id)
    del image.topics[topic.name]
    del image.topic_by_collision_key[collision_key(topic.name)]
    image.configs.pop((TOPIC_RESOURCE, topic.name), None)
    image.topics_version += 1


def _replay_config(image: MetadataImage, record: ConfigRecord) -> None:
    resource = (int(record.resource_type), record.resource_name)
    values = image.configs.setdefault(resource, {})
    image.configs_version += 1
    if record.value is not None:
        values[record.name] = record.value
        return
    values.pop(record.name, None)
    if not values:
        del image.configs[resource]


def _replay_register_broker(image: MetadataImage, record: RegisterBrokerRecord) -> None:
    image.brokers[record.broker_id] = record


def _replay_unregister_broker(image: MetadataImage, record: UnregisterBrokerRecord) -> None:
    image.brokers.pop(record.broker_id, None)


def _replay_broker_change(image: MetadataImage, record: BrokerRegistrationChangeRecord) -> None:
    broker = image.brokers[record.broker_id]
    if record.fenced != NO_CHANGE:
        broker = replace(broker, fenced=record.fenced == FENCE)
    if record.in_controlled_shutdown == IN_CONTROLLED_SHUTDOWN:
        broker = replace(broker, in_controlled_shutdown=True)
    if record.log_dirs:
        broker = replace(broker, log_dirs=record.log_dirs)
    image.brokers[record.broker_id] = broker


def _replay_feature(image: MetadataImage, record: FeatureLevelRecord) -> None:
    image.features[record.name] = record.feature_level


def _replay_producer_ids(image: MetadataImage, record: ProducerIdsRecord) -> None:
    image.producer_ids = record


def _replay_scram_credential(image: MetadataImage, record: UserScramCredentialRecord) -> None:
    image.scram_credentials[record.name, int(record.mechanism)] = ScramCredential(
        record.salt, record.stored_key, record.server_key, int(record.iterations)
    )


def _replay_remove_scram_credential(
    image: MetadataImage, record: RemoveUserScramCredentialRecord
) -> None:
    image.scram_credentials.pop((record.name, int(record.mechanism)), None)


def _replay_token(image: MetadataImage, record: DelegationTokenRecord) -> None:
    image.delegation_tokens[record.token_id] = DelegationToken(
        record.token_id,
        _principal(record.owner),
        _principal(record.requester),
        tuple(map(_principal, record.renewers)),
        int(record.issue_timestamp),
        int(record.max_timestamp),
        int(record.expiration_timestamp),
    )


def _replay_remove_token(image: MetadataImage, record: RemoveDelegationTokenRecord) -> None:
    image.delegation_tokens.pop(record.token_id, None)


def _principal(text: str) -> Principal:
    principal_type, _, name = text.partition(":")
    return Principal(principal_type, name)


def _replay_acl(image: MetadataImage, record: AccessControlEntryRecord) -> None:
    acl = AclBinding(
        ResourceType(record.resource_type),
        record.resource_name,
        PatternType(record.pattern_type),
        _principal(record.principal),
        record.host,
        Operation(record.operation),
        Permission(record.permission_type),
    )
    image.acls.add(record.id or _NO_ID, acl)


def _replay_remove_acl(image: MetadataImage, record: RemoveAccessControlEntryRecord) -> None:
    image.acls.remove(record.id or _NO_ID)


def _replay_client_quota(image: MetadataImage, record: ClientQuotaRecord) -> None:
    entity = entity_of((part.entity_type, part.entity_name) for part in record.entity)
    bounds = image.client_quotas.setdefault(entity, {})
    if record.remove:
        bounds.pop(record.key, None)
    else:
        bounds[record.key] = float(record.value)
    if not bounds:
        del image.client_quotas[entity]


def _replay_nothing(image: MetadataImage, record: NoOpRecord) -> None:
    del image, record


_REPLAY: Final[dict[type, Callable[[MetadataImage, Any], None]]] = {
    TopicRecord: _replay_topic,
    PartitionRecord: _replay_partition,
    PartitionChangeRecord: _replay_partition_change,
    RemoveTopicRecord: _replay_remove_topic,
    ConfigRecord: _replay_config,
    RegisterBrokerRecord: _replay_register_broker,
    UnregisterBrokerRecord: _replay_unregister_broker,
    BrokerRegistrationChangeRecord: _replay_broker_change,
    FeatureLevelRecord: _replay_feature,
    ProducerIdsRecord: _replay_producer_ids,
    UserScramCredentialRecord: _replay_scram_credential,
    RemoveUserScramCredentialRecord: _replay_remove_scram_credential,
    DelegationTokenRecord: _replay_token,
    RemoveDelegationTokenRecord: _replay_remove_token,
    AccessControlEntryRecord: _replay_acl,
    RemoveAccessControlEntryRecord: _replay_remove_acl,
    ClientQuotaRecord: _replay_client_quota,
    NoOpRecord: _replay_nothing,
}
