"""Client configuration, translated into librdkafka's settings."""

import enum
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from ottla.client.partitioners import Partition, Partitioner
from ottla.client.profiles import current_profile
from ottla.client.serializers import Deserializer, Serializer, raw, serialize_by_type

DEFAULT_SERVER = "localhost:9092"
_NOTICE = 5  # librdkafka's level; one below, it reports every closed connection.
_SERVER_VARIABLES = ("OTTLA_BOOTSTRAP_SERVERS", "OTTLA_BOOTSTRAP_SERVER")


class AckMode(enum.StrEnum):
    ALL = "all"  # Every in-sync replica must have the record.
    LEADER = "1"
    NONE = "0"  # No acknowledgement.


class OffsetResetPolicy(enum.StrEnum):
    """Where to start if the group has no offset, or one that no longer exists."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "error"


class IsolationLevel(enum.StrEnum):
    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


class GroupProtocol(enum.StrEnum):
    CLASSIC = "classic"
    CONSUMER = "consumer"  # KIP-848: the broker assigns partitions.


class CompressionType(enum.StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


class WhenFull(enum.Enum):
    """What `send` does when the buffer is full."""

    BLOCK = "block"
    RAISE = "raise"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """`bootstrap_servers` is a list or a comma-separated string. It defaults to the environment
    (OTTLA_BOOTSTRAP_SERVER), then to the current profile, then to localhost:9092.

    `extra` has additional librdkafka settings, which take precedence.
    """

    bootstrap_servers: Sequence[str] | str = ()
    client_id: str = "ottla"
    security_protocol: str = ""
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ssl_ca_location: str = ""
    ssl_certificate_location: str = ""
    ssl_key_location: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Self | None, fields: Mapping[str, Any]) -> Self:
        """The config, or else one with these fields."""
        if config is not None and fields:
            raise TypeError(f"give a {cls.__name__} or its fields, not both")
        return config or cls(**fields)

    def settings(self) -> dict[str, Any]:
        """The settings for a confluent-kafka client."""
        return {**self._connection(), **self._own(), **self.extra}

    def _own(self) -> dict[str, Any]:
        return {}

    def _connection(self) -> dict[str, Any]:
        servers = self.bootstrap_servers
        text = servers if isinstance(servers, str) else ",".join(servers)
        profile: Mapping[str, Any] = {}
        if not text:
            text = next((os.environ[name] for name in _SERVER_VARIABLES if name in os.environ), "")
        if not text:
            profile = current_profile()
        given = {
            "bootstrap.servers": text,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.sasl_password,
            "ssl.ca.location": self.ssl_ca_location,
            "ssl.certificate.location": self.ssl_certificate_location,
            "ssl.key.location": self.ssl_key_location,
        }
        named = {key: value for key, value in given.items() if value}
        default = {
            "bootstrap.servers": DEFAULT_SERVER,
            "client.id": self.client_id,
            "log_level": _NOTICE,
        }
        return {**default, **profile, **named}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig(ClientConfig):
    """Idempotent unless `acks` is less than all.

    `buffer_memory` bounds the unsent records; `when_full` says whether `send` then blocks, for at
    most `max_block_ms`, or raises BufferFull.
    """

    acks: AckMode = AckMode.ALL
    batch_size: int = 1_000_000
    linger_ms: float = 5
    retries: int = 2_147_483_647
    enable_idempotence: bool | None = None
    compression_type: CompressionType | str = CompressionType.NONE
    buffer_memory: int = 256 * 1024 * 1024
    when_full: WhenFull = WhenFull.BLOCK
    max_block_ms: int = 60_000
    delivery_timeout_ms: int = 120_000
    transactional_id: str | None = None
    transaction_timeout_ms: int = 60_000
    partitioner: Partitioner = Partition.MURMUR2
    key_serializer: Serializer = serialize_by_type
    value_serializer: Serializer = serialize_by_type

    def _own(self) -> dict[str, Any]:
        idempotent = self.enable_idempotence
        settings: dict[str, Any] = {
            "acks": str(self.acks),
            "batch.size": self.batch_size,
            "linger.ms": self.linger_ms,
            "retries": self.retries,
            "enable.idempotence": self.acks is AckMode.ALL if idempotent is None else idempotent,
            "compression.type": str(self.compression_type),
            "queue.buffering.max.kbytes": max(1, self.buffer_memory // 1024),
            "queue.buffering.max.messages": 0,
            "delivery.timeout.ms": self.delivery_timeout_ms,
        }
        if self.transactional_id is not None:
            timeout_ms = self.transaction_timeout_ms
            settings["transactional.id"] = self.transactional_id
            settings["transaction.timeout.ms"] = timeout_ms
            settings["delivery.timeout.ms"] = min(self.delivery_timeout_ms, timeout_ms)
        if isinstance(self.partitioner, Partition):
            settings |= self.partitioner.settings
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig(ClientConfig):
    """Without `group_id`, partitions are assigned manually and nothing can be committed.

    With `enable_auto_commit`, a message counts as read once the next one, or the next `poll`, is
    requested. With the protocol `consumer`, the broker sets the session timeout.
    """

    group_id: str | None = None
    auto_offset_reset: OffsetResetPolicy = OffsetResetPolicy.LATEST
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    isolation_level: IsolationLevel = IsolationLevel.READ_COMMITTED
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    session_timeout_ms: int | None = None
    key_deserializer: Deserializer = raw
    value_deserializer: Deserializer = raw

    def _own(self) -> dict[str, Any]:
        settings: dict[str, Any] = {
            # librdkafka requires one, even if the consumer never commits.
            "group.id": self.group_id or "ottla-without-group",
            "auto.offset.reset": str(self.auto_offset_reset),
            "enable.auto.commit": self.enable_auto_commit and self.group_id is not None,
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": self.auto_commit_interval_ms,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "isolation.level": str(self.isolation_level),
            "group.protocol": str(self.group_protocol),
        }
        if self.session_timeout_ms is not None and self.group_protocol is GroupProtocol.CLASSIC:
            settings["session.timeout.ms"] = self.session_timeout_ms
        return settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareConsumerConfig(ClientConfig):
    """A consumer takes `max_poll_records` at a time, or one whole produced batch if that is more.

    No other consumer gets them meanwhile, so choose few for long tasks and many for short ones.
    """

    group_id: str
    max_poll_records: int = 500
    max_poll_interval_ms: int = 300_000
    key_deserializer: Deserializer = raw
    value_deserializer: Deserializer = raw

    def _own(self) -> dict[str, Any]:
        return {
            "group.id": self.group_id,
            "max.poll.records": self.max_poll_records,
            "max.poll.interval.ms": self.max_poll_interval_ms,
            "share.acknowledgement.mode": "explicit",
        }
