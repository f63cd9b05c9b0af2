"""The records of the metadata log, with Kafka's layouts, so that its dump tool reads them.

A record states everything known about its subject. The image keeps the newest record of each topic,
partition and broker as that subject's state; change records are merged into it.

Every layout has the version that `__version__` names; the log contains no other.
"""

from dataclasses import field
from typing import ClassVar
from uuid import UUID

from kio.schema.types import BrokerId, ProducerId, TopicName
from kio.static.primitive import f64, i8, i16, i32, i64, u16

from ottla.protocol.entities import entity, wire

NO_LEADER = BrokerId(-1)
LEADER_UNCHANGED = BrokerId(-2)

FENCE = i8(1)
UNFENCE = i8(-1)
NO_CHANGE = i8(0)
IN_CONTROLLED_SHUTDOWN = i8(1)


class _Layout:
    """Flexible, and of version 0 unless the record says otherwise."""

    __slots__ = ()
    __version__: ClassVar[i16] = i16(0)
    __flexible__: ClassVar[bool] = True


@entity
class BrokerEndpoint(_Layout):
    __version__: ClassVar[i16] = i16(3)
    name: str = field(metadata=wire("string"))
    host: str = field(metadata=wire("string"))
    port: u16 = field(metadata=wire("uint16"))
    security_protocol: i16 = field(metadata=wire("int16"), default=i16(0))


@entity
class BrokerFeature(_Layout):
    __version__: ClassVar[i16] = i16(3)
    name: str = field(metadata=wire("string"))
    min_supported_version: i16 = field(metadata=wire("int16"))
    max_supported_version: i16 = field(metadata=wire("int16"))


@entity
class RegisterBrokerRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(0)
    __version__: ClassVar[i16] = i16(3)
    broker_id: BrokerId = field(metadata=wire("int32"))
    is_migrating_zk_broker: bool = field(metadata=wire("bool"), default=False)
    incarnation_id: UUID | None = field(metadata=wire("uuid"))
    broker_epoch: i64 = field(metadata=wire("int64"))
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...] = ()
    rack: str | None = field(metadata=wire("string"), default=None)
    fenced: bool = field(metadata=wire("bool"), default=True)
    in_controlled_shutdown: bool = field(metadata=wire("bool"), default=False)
    log_dirs: tuple[UUID | None, ...] = field(metadata=wire("uuid", tag=0), default=())


@entity
class UnregisterBrokerRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(1)
    broker_id: BrokerId = field(metadata=wire("int32"))
    broker_epoch: i64 = field(metadata=wire("int64"))


@entity
class TopicRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(2)
    name: TopicName = field(metadata=wire("string"))
    topic_id: UUID = field(metadata=wire("uuid"))


@entity
class PartitionRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(3)
    __version__: ClassVar[i16] = i16(2)
    partition_id: i32 = field(metadata=wire("int32"))
    topic_id: UUID = field(metadata=wire("uuid"))
    replicas: tuple[BrokerId, ...] = field(metadata=wire("int32"))  # The preferred leader first.
    isr: tuple[BrokerId, ...] = field(metadata=wire("int32"))
    removing_replicas: tuple[BrokerId, ...] = field(metadata=wire("int32"), default=())
    adding_replicas: tuple[BrokerId, ...] = field(metadata=wire("int32"), default=())
    leader: BrokerId = field(metadata=wire("int32"), default=NO_LEADER)
    leader_recovery_state: i8 = field(metadata=wire("int8", tag=0), default=i8(0))
    leader_epoch: i32 = field(metadata=wire("int32"), default=i32(0))
    partition_epoch: i32 = field(metadata=wire("int32"), default=i32(0))
    directories: tuple[UUID | None, ...] = field(metadata=wire("uuid"), default=())
    eligible_leader_replicas: tuple[BrokerId, ...] | None = field(
        metadata=wire("int32", tag=1), default=None
    )
    last_known_elr: tuple[BrokerId, ...] | None = field(metadata=wire("int32", tag=2), default=None)


@entity
class ConfigRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(4)
    resource_type: i8 = field(metadata=wire("int8"))
    resource_name: str = field(metadata=wire("string"))  # Empty: the default of all brokers.
    name: str = field(metadata=wire("string"))
    value: str | None = field(metadata=wire("string"))  # None: back to the default.


@entity
class PartitionChangeRecord(_Layout):
    """Fields that are None (or LEADER_UNCHANGED, or recovery state -1) stay unchanged."""

    __api_key__: ClassVar[i16] = i16(5)
    __version__: ClassVar[i16] = i16(2)
    partition_id: i32 = field(metadata=wire("int32"))
    topic_id: UUID = field(metadata=wire("uuid"))
    isr: tuple[BrokerId, ...] | None = field(metadata=wire("int32", tag=0), default=None)
    leader: BrokerId = field(metadata=wire("int32", tag=1), default=LEADER_UNCHANGED)
    replicas: tuple[BrokerId, ...] | None = field(metadata=wire("int32", tag=2), default=None)
    removing_replicas: tuple[BrokerId, ...] | None = field(
        metadata=wire("int32", tag=3), default=None
    )
    adding_replicas: tuple[BrokerId, ...] | None = field(
        metadata=wire("int32", tag=4), default=None
    )
    leader_recovery_state: i8 = field(metadata=wire("int8", tag=5), default=i8(-1))
    eligible_leader_replicas: tuple[BrokerId, ...] | None = field(
        metadata=wire("int32", tag=6), default=None
    )
    last_known_elr: tuple[BrokerId, ...] | None = field(metadata=wire("int32", tag=7), default=None)
    directories: tuple[UUID | None, ...] | None = field(metadata=wire("uuid", tag=8), default=None)


@entity
class RemoveTopicRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(9)
    topic_id: UUID = field(metadata=wire("uuid"))


@entity
class UserScramCredentialRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(11)
    name: str = field(metadata=wire("string"))
    mechanism: i8 = field(metadata=wire("int8"))
    salt: bytes = field(metadata=wire("bytes"), repr=False)
    stored_key: bytes = field(metadata=wire("bytes"), repr=False)
    server_key: bytes = field(metadata=wire("bytes"), repr=False)
    iterations: i32 = field(metadata=wire("int32"))


@entity
class DelegationTokenRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(10)
    owner: str = field(metadata=wire("string"))
    requester: str = field(metadata=wire("string"))
    renewers: tuple[str, ...] = field(metadata=wire("string"))
    issue_timestamp: i64 = field(metadata=wire("int64"))
    max_timestamp: i64 = field(metadata=wire("int64"))
    expiration_timestamp: i64 = field(metadata=wire("int64"))
    token_id: str = field(metadata=wire("string"))


@entity
class FeatureLevelRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(12)
    name: str = field(metadata=wire("string"))
    feature_level: i16 = field(metadata=wire("int16"))  # 0: the feature is off.


@entity
class QuotaEntityData(_Layout):
    entity_type: str = field(metadata=wire("string"))
    entity_name: str | None = field(metadata=wire("string"))  # None: the default.


@entity
class ClientQuotaRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(14)
    entity: tuple[QuotaEntityData, ...]
    key: str = field(metadata=wire("string"))
    value: f64 = field(metadata=wire("float64"))  # 0 if it is removed.
    remove: bool = field(metadata=wire("bool"))


@entity
class ProducerIdsRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(15)
    broker_id: BrokerId = field(metadata=wire("int32"))
    broker_epoch: i64 = field(metadata=wire("int64"))
    next_producer_id: ProducerId = field(metadata=wire("int64"))


@entity
class BrokerRegistrationChangeRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(17)
    __version__: ClassVar[i16] = i16(2)
    broker_id: BrokerId = field(metadata=wire("int32"))
    broker_epoch: i64 = field(metadata=wire("int64"))
    fenced: i8 = field(metadata=wire("int8", tag=0), default=NO_CHANGE)
    in_controlled_shutdown: i8 = field(metadata=wire("int8", tag=1), default=NO_CHANGE)
    log_dirs: tuple[UUID | None, ...] = field(metadata=wire("uuid", tag=2), default=())


@entity
class AccessControlEntryRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(18)
    id: UUID | None = field(metadata=wire("uuid"))
    resource_type: i8 = field(metadata=wire("int8"))
    resource_name: str = field(metadata=wire("string"))
    pattern_type: i8 = field(metadata=wire("int8"))
    principal: str = field(metadata=wire("string"))
    host: str = field(metadata=wire("string"))
    operation: i8 = field(metadata=wire("int8"))
    permission_type: i8 = field(metadata=wire("int8"))


@entity
class RemoveAccessControlEntryRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(19)
    id: UUID | None = field(metadata=wire("uuid"))


@entity
class RemoveUserScramCredentialRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(22)
    name: str = field(metadata=wire("string"))
    mechanism: i8 = field(metadata=wire("int8"))


@entity
class RemoveDelegationTokenRecord(_Layout):
    __api_key__: ClassVar[i16] = i16(26)
    token_id: str = field(metadata=wire("string"))


@entity
class NoOpRecord(_Layout):
    """Written by a new quorum leader so that earlier epochs are committed."""

    __api_key__: ClassVar[i16] = i16(20)


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
)
