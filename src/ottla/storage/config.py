"""The log settings of a topic, with Kafka's names and defaults.

A key that a topic does not set takes the value of its broker synonym; see `broker_config`.
"""

from typing import Any, Self, TypeVar

from ottla.controller.config import (
    IMPORT_OPEN,
    MIN_INSYNC_REPLICAS,
    RECORD_IMPORT,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)
from ottla.protocol.config import (
    ConfigKey,
    ConfigType,
    ConfigValues,
    Validator,
    at_least,
    between,
    declared_keys,
    each_of,
    int_key,
    one_of,
)
from ottla.protocol.lazy_dataclass import dataclass

T = TypeVar("T")

LONG_MAX = 2**63 - 1
SEGMENT_BYTES_MIN = 1 << 20
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_WEEK_MS = 7 * _DAY_MS


def _topic_key(
    name: str,
    type_: ConfigType,
    default: T,
    synonym: str | None,
    doc: str,
    validator: Validator[Any] | None = None,
    *,
    has_effect: bool = True,
) -> ConfigKey[T]:
    return ConfigKey(name, type_, default, doc, validator, synonym, has_effect=has_effect)


def _throttled_replicas(replicas: tuple[str, ...]) -> str | None:
    for replica in replicas:
        partition, _, broker = replica.partition(":")
        if replica != "*" and not (partition.isdecimal() and broker.isdecimal()):
            return f"{replica!r} is not * or PARTITION:BROKER"
    return None


def _level(name: str, default: int, validator: Validator[int]) -> ConfigKey[int]:
    return _topic_key(
        name,
        ConfigType.INT,
        default,
        name,
        "Accepted for compatibility; batches are stored as the producer compressed them.",
        validator,
        has_effect=False,
    )


def _local_retention(name: str, limit: str) -> ConfigKey[int]:
    return _topic_key(
        f"local.retention.{name}",
        ConfigType.LONG,
        -2,
        f"log.local.retention.{name}",
        f"Accepted for compatibility; there is no tiered storage, so {limit} holds.",
        at_least(-2),
        has_effect=False,
    )


def _remote(name: str, validator: Validator[bool] | None = None) -> ConfigKey[bool]:
    doc = "Accepted for compatibility; there is no tiered storage."
    return _topic_key(name, ConfigType.BOOLEAN, False, None, doc, validator, has_effect=False)


CLEANUP_POLICY = _topic_key(
    "cleanup.policy",
    ConfigType.LIST,
    ("delete",),
    "log.cleanup.policy",
    "What happens to old segments: delete removes them, compact keeps the last record of each "
    "key. Empty: they stay forever.",
    each_of("delete", "compact"),
)
COMPRESSION_TYPE = _topic_key(
    "compression.type",
    ConfigType.STRING,
    "producer",
    "compression.type",
    "The preferred codec; batches are stored as the producer compressed them.",
    one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
)
RECORD_VALIDATION_ENABLE = _topic_key(
    "record.validation.enable",
    ConfigType.BOOLEAN,
    False,
    "record.validation.enable",
    "Whether batches whose records cannot be read are refused, as Kafka does. Every record that is"
    " produced is decompressed and decoded for that. Without it only checksum and header are"
    " checked; on compacted topics keys as well.",
)
DELIVERY_DELAY_ENABLE = _topic_key(
    "delivery.delay.enable",
    ConfigType.BOOLEAN,
    False,
    None,
    "Whether share groups honour the record header `ottla-deliver-at` and do not deliver a record"
    " before that time (milliseconds since 1970, as a decimal number). For that they decode every"
    " record once.",
)
DELETE_RETENTION_MS = _topic_key(
    "delete.retention.ms",
    ConfigType.LONG,
    _DAY_MS,
    "log.cleaner.delete.retention.ms",
    "How long compaction keeps tombstones, for readers that are behind.",
    at_least(0),
)
FILE_DELETE_DELAY_MS = _topic_key(
    "file.delete.delay.ms",
    ConfigType.LONG,
    60_000,
    "log.segment.delete.delay.ms",
    "How long a removed segment stays on the disk, for readers that still hold it.",
    at_least(0),
)
FLUSH_MESSAGES = _topic_key(
    "flush.messages",
    ConfigType.LONG,
    LONG_MAX,
    "log.flush.interval.messages",
    "Records after which a log is synced, whatever flush.policy says.",
    at_least(1),
)
FLUSH_MS = _topic_key(
    "flush.ms",
    ConfigType.LONG,
    LONG_MAX,
    "log.flush.interval.ms",
    "Time after which a log is synced, whatever flush.policy says.",
    at_least(0),
)
INDEX_INTERVAL_BYTES = _topic_key(
    "index.interval.bytes",
    ConfigType.INT,
    4096,
    "log.index.interval.bytes",
    "Bytes of a segment between two entries of its indexes.",
    at_least(0),
)
MAX_COMPACTION_LAG_MS = _topic_key(
    "max.compaction.lag.ms",
    ConfigType.LONG,
    LONG_MAX,
    "log.cleaner.max.compaction.lag.ms",
    "The longest time that a record stays uncompacted.",
    at_least(1),
)
MAX_MESSAGE_BYTES = _topic_key(
    "max.message.bytes",
    ConfigType.INT,
    1_048_588,
    "message.max.bytes",
    "The largest accepted record batch.",
    at_least(0),
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = _topic_key(
    "message.timestamp.after.max.ms",
    ConfigType.LONG,
    _HOUR_MS,
    "log.message.timestamp.after.max.ms",
    "How far a record's timestamp may be ahead of the broker's clock.",
    at_least(0),
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = _topic_key(
    "message.timestamp.before.max.ms",
    ConfigType.LONG,
    LONG_MAX,
    "log.message.timestamp.before.max.ms",
    "How far a record's timestamp may be behind the broker's clock.",
    at_least(0),
)
MESSAGE_TIMESTAMP_TYPE = _topic_key(
    "message.timestamp.type",
    ConfigType.STRING,
    "CreateTime",
    "log.message.timestamp.type",
    "Whose time a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).",
    one_of("CreateTime", "LogAppendTime"),
)
MIN_CLEANABLE_DIRTY_RATIO = _topic_key(
    "min.cleanable.dirty.ratio",
    ConfigType.DOUBLE,
    0.5,
    "log.cleaner.min.cleanable.ratio",
    "The share of a log that must be uncompacted before it is compacted.",
    between(0, 1),
)
MIN_COMPACTION_LAG_MS = _topic_key(
    "min.compaction.lag.ms",
    ConfigType.LONG,
    0,
    "log.cleaner.min.compaction.lag.ms",
    "The shortest time that a record stays uncompacted.",
    at_least(0),
)
PREALLOCATE = _topic_key(
    "preallocate",
    ConfigType.BOOLEAN,
    False,
    "log.preallocate",
    "Accepted for compatibility; segments always grow as they are written.",
)
RETENTION_BYTES = _topic_key(
    "retention.bytes",
    ConfigType.LONG,
    -1,
    "log.retention.bytes",
    "The size of a partition above which its oldest segments are removed; -1 for no limit.",
    at_least(-1),
)
RETENTION_MS = _topic_key(
    "retention.ms",
    ConfigType.LONG,
    _WEEK_MS,
    "log.retention.ms",
    "The age above which segments are removed; -1 for no limit.",
    at_least(-1),
)
SEGMENT_BYTES = _topic_key(
    "segment.bytes",
    ConfigType.INT,
    1 << 30,
    "log.segment.bytes",
    "The size at which a new segment starts.",
    at_least(SEGMENT_BYTES_MIN),
)
INTERNAL_SEGMENT_BYTES: ConfigKey[int | None] = int_key(
    "internal.segment.bytes",
    None,
    "Takes precedence over segment.bytes, for tests that want small segments.",
    lambda size: "Value must be at least 1" if size is not None and size < 1 else None,
    internal=True,
)
SEGMENT_INDEX_BYTES = _topic_key(
    "segment.index.bytes",
    ConfigType.INT,
    10 << 20,
    "log.index.size.max.bytes",
    "The size of the offset index at which a new segment starts.",
    at_least(4),
)
SEGMENT_JITTER_MS = _topic_key(
    "segment.jitter.ms",
    ConfigType.LONG,
    0,
    "log.roll.jitter.ms",
    "The maximum random time subtracted from segment.ms for each segment.",
    at_least(0),
)
SEGMENT_MS = _topic_key(
    "segment.ms",
    ConfigType.LONG,
    _WEEK_MS,
    "log.roll.ms",
    "The age at which a new segment starts.",
    at_least(1),
)
LEADER_REPLICATION_THROTTLED_REPLICAS = _topic_key(
    "leader.replication.throttled.replicas",
    ConfigType.LIST,
    (),
    None,
    "Replicas whose replication is throttled on the leader: partition:broker pairs, or *.",
    _throttled_replicas,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = _topic_key(
    "follower.replication.throttled.replicas",
    ConfigType.LIST,
    (),
    None,
    "Replicas whose replication is throttled on the follower: partition:broker pairs, or *.",
    _throttled_replicas,
)

_WITHOUT_EFFECT: tuple[ConfigKey[Any], ...] = (
    _level(
        "compression.gzip.level",
        -1,
        lambda level: None if level == -1 else between(1, 9)(level),
    ),
    _level("compression.lz4.level", 9, between(1, 17)),
    _level("compression.zstd.level", 3, between(-131_072, 22)),
    _local_retention("bytes", "retention.bytes"),
    _local_retention("ms", "retention.ms"),
    _remote("remote.log.copy.disable"),
    _remote("remote.log.delete.on.disable"),
    _remote("remote.storage.enable", lambda value: "there is no tiered storage" if value else None),
)

TOPIC_KEYS = (*declared_keys(globals()), *_WITHOUT_EFFECT)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic keys that a log obeys; each field is the key with underscores for dots."""

    cleanup_policy: tuple[str, ...] = CLEANUP_POLICY.default
    compression_type: str = COMPRESSION_TYPE.default
    delete_retention_ms: int = DELETE_RETENTION_MS.default
    delivery_delay_enable: bool = DELIVERY_DELAY_ENABLE.default
    file_delete_delay_ms: int = FILE_DELETE_DELAY_MS.default
    follower_replication_throttled_replicas: tuple[str, ...] = ()
    flush_messages: int = FLUSH_MESSAGES.default
    flush_ms: int = FLUSH_MS.default
    index_interval_bytes: int = INDEX_INTERVAL_BYTES.default
    leader_replication_throttled_replicas: tuple[str, ...] = ()
    max_compaction_lag_ms: int = MAX_COMPACTION_LAG_MS.default
    max_message_bytes: int = MAX_MESSAGE_BYTES.default
    message_timestamp_after_max_ms: int = MESSAGE_TIMESTAMP_AFTER_MAX_MS.default
    message_timestamp_before_max_ms: int = MESSAGE_TIMESTAMP_BEFORE_MAX_MS.default
    message_timestamp_type: str = MESSAGE_TIMESTAMP_TYPE.default
    min_cleanable_dirty_ratio: float = MIN_CLEANABLE_DIRTY_RATIO.default
    min_compaction_lag_ms: int = MIN_COMPACTION_LAG_MS.default
    min_insync_replicas: int = MIN_INSYNC_REPLICAS.default
    record_import: str = RECORD_IMPORT.default
    record_validation_enable: bool = RECORD_VALIDATION_ENABLE.default
    retention_bytes: int = RETENTION_BYTES.default
    retention_ms: int = RETENTION_MS.default
    segment_bytes: int = SEGMENT_BYTES.default
    segment_index_bytes: int = SEGMENT_INDEX_BYTES.default
    segment_jitter_ms: int = SEGMENT_JITTER_MS.default
    segment_ms: int = SEGMENT_MS.default
    unclean_leader_election_enable: bool = UNCLEAN_LEADER_ELECTION_ENABLE.default

    @classmethod
    def of(cls, values: ConfigValues) -> Self:
        keys = {key.name.replace(".", "_"): key for key in TOPIC_KEYS}
        fields = {field: values[keys[field]] for field in cls.__dataclass_fields__}
        segment_bytes = values[INTERNAL_SEGMENT_BYTES]
        if segment_bytes is not None:
            fields["segment_bytes"] = segment_bytes
        return cls(**fields)

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def takes_imports(self) -> bool:
        """While this is true, ordinary writes are refused."""
        return self.record_import == IMPORT_OPEN

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """The active segment is not compacted, so max.compaction.lag.ms bounds its age as well."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"
