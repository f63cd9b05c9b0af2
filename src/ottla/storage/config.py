"""The log settings of a topic, with Kafka's names and defaults.

A key that a topic does not set takes the value of its broker synonym; see `broker_config`.
"""

from typing import Any, Self

from ottla.controller import config as controller_config
from ottla.controller.config import IMPORT_OPEN, MIN_INSYNC_REPLICAS, RECORD_IMPORT
from ottla.protocol.config import (
    ConfigKey,
    ConfigValues,
    Validator,
    at_least,
    between,
    boolean_key,
    declared_keys,
    double_key,
    each_of,
    int_key,
    list_key,
    long_key,
    one_of,
    string_key,
)
from ottla.protocol.lazy_dataclass import dataclass

LONG_MAX = 2**63 - 1
SEGMENT_BYTES_MIN = 1 << 20
_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS
_WEEK_MS = 7 * _DAY_MS


def _throttled_replicas(replicas: tuple[str, ...]) -> str | None:
    for replica in replicas:
        partition, _, broker = replica.partition(":")
        if replica != "*" and not (partition.isdecimal() and broker.isdecimal()):
            return f"{replica!r} is not * or PARTITION:BROKER"
    return None


def _level(name: str, default: int, validator: Validator[int]) -> ConfigKey[int]:
    doc = "Accepted for compatibility; batches are stored as the producer compressed them."
    return int_key(name, default, doc, validator, synonym=name, has_effect=False)


def _local_retention(name: str, limit: str) -> ConfigKey[int]:
    doc = f"Accepted for compatibility; there is no tiered storage, so {limit} holds."
    synonym = f"log.local.retention.{name}"
    return long_key(
        f"local.retention.{name}", -2, doc, at_least(-2), synonym=synonym, has_effect=False
    )


def _remote(name: str, validator: Validator[bool] | None = None) -> ConfigKey[bool]:
    doc = "Accepted for compatibility; there is no tiered storage."
    return boolean_key(name, False, doc, validator, has_effect=False)


CLEANUP_POLICY = list_key(
    "cleanup.policy",
    ("delete",),
    "What happens to old segments: delete removes them, compact keeps the last record of each "
    "key. Empty: they stay forever.",
    each_of("delete", "compact"),
    synonym="log.cleanup.policy",
)
COMPRESSION_TYPE = string_key(
    "compression.type",
    "producer",
    "The preferred codec; batches are stored as the producer compressed them.",
    one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    synonym="compression.type",
)
RECORD_VALIDATION_ENABLE = boolean_key(
    "record.validation.enable",
    False,
    "Whether to refuse batches whose records cannot be read, as Kafka does. This decompresses and"
    " decodes every produced record. Without it, only checksums and headers are checked, and on"
    " compacted topics keys.",
    synonym="record.validation.enable",
)
DELIVERY_DELAY_ENABLE = boolean_key(
    "delivery.delay.enable",
    False,
    "Whether share groups honour the record header `ottla-deliver-at` and do not deliver a record"
    " before that time (milliseconds since 1970, as a decimal number). They then decode every"
    " record once.",
)
DELETE_RETENTION_MS = long_key(
    "delete.retention.ms",
    _DAY_MS,
    "How long compaction keeps tombstones, for readers that are behind.",
    at_least(0),
    synonym="log.cleaner.delete.retention.ms",
)
FILE_DELETE_DELAY_MS = long_key(
    "file.delete.delay.ms",
    60_000,
    "How long a removed segment stays on the disk, for readers that still hold it.",
    at_least(0),
    synonym="log.segment.delete.delay.ms",
)
FLUSH_MESSAGES = long_key(
    "flush.messages",
    LONG_MAX,
    "Records after which a log is synced, whatever flush.policy says.",
    at_least(1),
    synonym="log.flush.interval.messages",
)
FLUSH_MS = long_key(
    "flush.ms",
    LONG_MAX,
    "Time after which a log is synced, whatever flush.policy says.",
    at_least(0),
    synonym="log.flush.interval.ms",
)
INDEX_INTERVAL_BYTES = int_key(
    "index.interval.bytes",
    4096,
    "Bytes of a segment between two entries of its indexes.",
    at_least(0),
    synonym="log.index.interval.bytes",
)
MAX_COMPACTION_LAG_MS = long_key(
    "max.compaction.lag.ms",
    LONG_MAX,
    "The longest time that a record stays uncompacted.",
    at_least(1),
    synonym="log.cleaner.max.compaction.lag.ms",
)
MAX_MESSAGE_BYTES = int_key(
    "max.message.bytes",
    1_048_588,
    "The largest accepted record batch.",
    at_least(0),
    synonym="message.max.bytes",
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = long_key(
    "message.timestamp.after.max.ms",
    _HOUR_MS,
    "How far a record's timestamp may be ahead of the broker's clock.",
    at_least(0),
    synonym="log.message.timestamp.after.max.ms",
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = long_key(
    "message.timestamp.before.max.ms",
    LONG_MAX,
    "How far a record's timestamp may be behind the broker's clock.",
    at_least(0),
    synonym="log.message.timestamp.before.max.ms",
)
MESSAGE_TIMESTAMP_TYPE = string_key(
    "message.timestamp.type",
    "CreateTime",
    "Whose time a record carries: the producer's (CreateTime) or the broker's (LogAppendTime).",
    one_of("CreateTime", "LogAppendTime"),
    synonym="log.message.timestamp.type",
)
MIN_CLEANABLE_DIRTY_RATIO = double_key(
    "min.cleanable.dirty.ratio",
    0.5,
    "The share of a log that must be uncompacted before it is compacted.",
    between(0, 1),
    synonym="log.cleaner.min.cleanable.ratio",
)
MIN_COMPACTION_LAG_MS = long_key(
    "min.compaction.lag.ms",
    0,
    "The shortest time that a record stays uncompacted.",
    at_least(0),
    synonym="log.cleaner.min.compaction.lag.ms",
)
PREALLOCATE = boolean_key(
    "preallocate",
    False,
    "Accepted for compatibility; segments always grow as they are written.",
    synonym="log.preallocate",
)
RETENTION_BYTES = long_key(
    "retention.bytes",
    -1,
    "The size of a partition above which its oldest segments are removed; -1 for no limit.",
    at_least(-1),
    synonym="log.retention.bytes",
)
RETENTION_MS = long_key(
    "retention.ms",
    _WEEK_MS,
    "The age above which segments are removed; -1 for no limit.",
    at_least(-1),
    synonym="log.retention.ms",
)
SEGMENT_BYTES = int_key(
    "segment.bytes",
    1 << 30,
    "The size at which a new segment starts.",
    at_least(SEGMENT_BYTES_MIN),
    synonym="log.segment.bytes",
)
INTERNAL_SEGMENT_BYTES: ConfigKey[int | None] = int_key(
    "internal.segment.bytes",
    None,
    "Takes precedence over segment.bytes, for tests that want small segments.",
    lambda size: "Value must be at least 1" if size is not None and size < 1 else None,
    internal=True,
)
SEGMENT_INDEX_BYTES = int_key(
    "segment.index.bytes",
    10 << 20,
    "The size of the offset index at which a new segment starts.",
    at_least(4),
    synonym="log.index.size.max.bytes",
)
SEGMENT_JITTER_MS = long_key(
    "segment.jitter.ms",
    0,
    "The maximum random time subtracted from segment.ms for each segment.",
    at_least(0),
    synonym="log.roll.jitter.ms",
)
SEGMENT_MS = long_key(
    "segment.ms",
    _WEEK_MS,
    "The age at which a new segment starts.",
    at_least(1),
    synonym="log.roll.ms",
)
LEADER_REPLICATION_THROTTLED_REPLICAS = list_key(
    "leader.replication.throttled.replicas",
    (),
    "Replicas whose replication is throttled on the leader: partition:broker pairs, or *.",
    _throttled_replicas,
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = list_key(
    "follower.replication.throttled.replicas",
    (),
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

TOPIC_KEYS = (
    *declared_keys(globals()),
    controller_config.UNCLEAN_LEADER_ELECTION_ENABLE,
    *_WITHOUT_EFFECT,
)


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic keys that a log obeys; each field is the key with underscores for dots."""

    cleanup_policy: tuple[str, ...] = CLEANUP_POLICY.default
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
