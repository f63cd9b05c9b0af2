"""The configuration of logs, with Kafka's names and defaults.

TOPIC_KEYS   what a topic can set for its partitions
BROKER_KEYS  the defaults of the topic keys, and what the log manager obeys

A topic key that a topic does not set takes the value of its broker synonym: `topic_defaults` turns
the broker's values into the layer below the topic's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from ottla.protocol.config import (
    ConfigKey,
    ConfigType,
    ConfigValues,
    Validator,
    at_least,
    between,
    each_of,
    one_of,
)

T = TypeVar("T")

LONG_MAX = 2**63 - 1
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
) -> ConfigKey[T]:
    return ConfigKey(name, type_, default, doc, validator, synonym)


def _long_or_unset(name: str, doc: str) -> ConfigKey[int | None]:
    return ConfigKey(name, ConfigType.LONG, None, doc)


def _cleanup_policies(policies: tuple[str, ...]) -> str | None:
    if not policies:
        return "must name delete, compact or both"
    return each_of("delete", "compact")(policies)


def _ratio(value: float) -> str | None:
    return None if 0 <= value <= 1 else "must be from 0 to 1"


CLEANUP_POLICY = _topic_key(
    "cleanup.policy",
    ConfigType.LIST,
    ("delete",),
    "log.cleanup.policy",
    "What happens to old segments: delete removes them, compact keeps the last record of each key.",
    _cleanup_policies,
)
COMPRESSION_TYPE = _topic_key(
    "compression.type",
    ConfigType.STRING,
    "producer",
    "compression.type",
    "The codec that is wished for; batches are kept as the producer compressed them.",
    one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
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
    "The largest record batch that is accepted.",
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
    _ratio,
)
MIN_COMPACTION_LAG_MS = _topic_key(
    "min.compaction.lag.ms",
    ConfigType.LONG,
    0,
    "log.cleaner.min.compaction.lag.ms",
    "The shortest time that a record stays uncompacted.",
    at_least(0),
)
MIN_INSYNC_REPLICAS = _topic_key(
    "min.insync.replicas",
    ConfigType.INT,
    1,
    "min.insync.replicas",
    "In-sync replicas that acks=all needs; with fewer, writes are refused.",
    at_least(1),
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
    "The size at which a new segment is begun.",
    at_least(14),
)
SEGMENT_INDEX_BYTES = _topic_key(
    "segment.index.bytes",
    ConfigType.INT,
    10 << 20,
    "log.index.size.max.bytes",
    "The size of a segment's offset index at which a new segment is begun.",
    at_least(4),
)
SEGMENT_JITTER_MS = _topic_key(
    "segment.jitter.ms",
    ConfigType.LONG,
    0,
    "log.roll.jitter.ms",
    "The most that is taken off segment.ms, differently for each segment.",
    at_least(0),
)
SEGMENT_MS = _topic_key(
    "segment.ms",
    ConfigType.LONG,
    _WEEK_MS,
    "log.roll.ms",
    "The age at which a new segment is begun.",
    at_least(1),
)
UNCLEAN_LEADER_ELECTION_ENABLE = _topic_key(
    "unclean.leader.election.enable",
    ConfigType.BOOLEAN,
    False,
    "unclean.leader.election.enable",
    "Elect a replica that is not in sync when no other is left; acknowledged records can be lost.",
)
LEADER_REPLICATION_THROTTLED_REPLICAS = _topic_key(
    "leader.replication.throttled.replicas",
    ConfigType.LIST,
    (),
    None,
    "Replicas whose replication is throttled on the leader: partition:broker pairs, or *.",
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = _topic_key(
    "follower.replication.throttled.replicas",
    ConfigType.LIST,
    (),
    None,
    "Replicas whose replication is throttled on the follower: partition:broker pairs, or *.",
)

TOPIC_KEYS: tuple[ConfigKey[Any], ...] = (
    CLEANUP_POLICY,
    COMPRESSION_TYPE,
    DELETE_RETENTION_MS,
    FILE_DELETE_DELAY_MS,
    FLUSH_MESSAGES,
    FLUSH_MS,
    FOLLOWER_REPLICATION_THROTTLED_REPLICAS,
    INDEX_INTERVAL_BYTES,
    LEADER_REPLICATION_THROTTLED_REPLICAS,
    MAX_COMPACTION_LAG_MS,
    MAX_MESSAGE_BYTES,
    MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    MESSAGE_TIMESTAMP_TYPE,
    MIN_CLEANABLE_DIRTY_RATIO,
    MIN_COMPACTION_LAG_MS,
    MIN_INSYNC_REPLICAS,
    PREALLOCATE,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_JITTER_MS,
    SEGMENT_MS,
    UNCLEAN_LEADER_ELECTION_ENABLE,
)

LOG_DIRS = ConfigKey(
    "log.dirs",
    ConfigType.LIST,
    ("data",),
    "The directories that hold the partitions.",
    lambda directories: None if directories else "must name at least one directory",
)
FLUSH_POLICY = ConfigKey(
    "flush.policy",
    ConfigType.STRING,
    "ack",
    "When appended records are synced: before they are acknowledged (ack), every "
    "flush.interval.ms (interval), or when the operating system likes (os).",
    one_of("ack", "interval", "os"),
)
FLUSH_INTERVAL_MS = ConfigKey(
    "flush.interval.ms",
    ConfigType.LONG,
    1000,
    "The time between syncs with flush.policy=interval.",
    at_least(1),
)
LOG_RETENTION_CHECK_INTERVAL_MS = ConfigKey(
    "log.retention.check.interval.ms",
    ConfigType.LONG,
    300_000,
    "How often logs are searched for segments to remove.",
    at_least(1),
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = ConfigKey(
    "log.flush.offset.checkpoint.interval.ms",
    ConfigType.LONG,
    60_000,
    "How often the offset up to which each log is synced is written down.",
    at_least(1),
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = ConfigKey(
    "log.flush.start.offset.checkpoint.interval.ms",
    ConfigType.LONG,
    60_000,
    "How often the offset at which each log starts is written down.",
    at_least(1),
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = ConfigKey(
    "num.recovery.threads.per.data.dir",
    ConfigType.INT,
    2,
    "Threads for each log directory that load logs at start and flush them at shutdown.",
    at_least(1),
)
LOG_OPEN_FILES_MAX = ConfigKey(
    "log.open.files.max",
    ConfigType.INT,
    2000,
    "Files of segments that are kept open at the same time.",
    at_least(16),
)
LOG_CLEANER_ENABLE = ConfigKey(
    "log.cleaner.enable", ConfigType.BOOLEAN, True, "Whether logs are compacted."
)
LOG_CLEANER_THREADS = ConfigKey(
    "log.cleaner.threads", ConfigType.INT, 1, "Threads that compact logs.", at_least(0)
)
LOG_CLEANER_BACKOFF_MS = ConfigKey(
    "log.cleaner.backoff.ms",
    ConfigType.LONG,
    15_000,
    "The pause when there is nothing to compact.",
    at_least(0),
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = ConfigKey(
    "log.cleaner.dedupe.buffer.size",
    ConfigType.LONG,
    128 << 20,
    "Memory for the keys of the records that are being compacted, for all threads.",
    at_least(1 << 20),
)
LOG_CLEANER_IO_BUFFER_SIZE = ConfigKey(
    "log.cleaner.io.buffer.size",
    ConfigType.INT,
    512 << 10,
    "Memory for the reads and writes of compaction, for all threads.",
    at_least(0),
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = ConfigKey(
    "log.cleaner.io.max.bytes.per.second",
    ConfigType.DOUBLE,
    float("inf"),
    "The most that compaction reads and writes in a second.",
)
PRODUCER_ID_EXPIRATION_MS = ConfigKey(
    "producer.id.expiration.ms",
    ConfigType.INT,
    _DAY_MS,
    "How long the last sequences of a silent producer are remembered.",
    at_least(1),
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = ConfigKey(
    "producer.id.expiration.check.interval.ms",
    ConfigType.INT,
    600_000,
    "How often silent producers are forgotten.",
    at_least(1),
)
LOG_RETENTION_MS = _long_or_unset(
    "log.retention.ms", "The default of retention.ms; log.retention.minutes if unset."
)
LOG_RETENTION_MINUTES = _long_or_unset(
    "log.retention.minutes", "The default of retention.ms in minutes; log.retention.hours if unset."
)
LOG_RETENTION_HOURS = ConfigKey(
    "log.retention.hours", ConfigType.INT, 168, "The default of retention.ms in hours."
)
LOG_ROLL_MS = _long_or_unset("log.roll.ms", "The default of segment.ms; log.roll.hours if unset.")
LOG_ROLL_HOURS = ConfigKey(
    "log.roll.hours",
    ConfigType.INT,
    168,
    "The default of segment.ms in hours.",
    between(1, 2**31 - 1),
)

_UNIT_KEYS: tuple[ConfigKey[Any], ...] = (
    LOG_RETENTION_MS,
    LOG_RETENTION_MINUTES,
    LOG_RETENTION_HOURS,
    LOG_ROLL_MS,
    LOG_ROLL_HOURS,
)


def _broker_key(key: ConfigKey[Any]) -> ConfigKey[Any]:
    assert key.synonym is not None
    return ConfigKey(
        key.synonym,
        key.type,
        key.default,
        f"The default of the topic key {key.name}. {key.doc}",
        key.validator,
        dynamic=True,
    )


BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    LOG_DIRS,
    FLUSH_POLICY,
    FLUSH_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    LOG_OPEN_FILES_MAX,
    LOG_CLEANER_ENABLE,
    LOG_CLEANER_THREADS,
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_IO_BUFFER_SIZE,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
    PRODUCER_ID_EXPIRATION_MS,
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS,
    *_UNIT_KEYS,
    *(
        _broker_key(key)
        for key in TOPIC_KEYS
        if key.synonym and key.synonym not in {unit.name for unit in _UNIT_KEYS}
    ),
)

_UNIT_SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    RETENTION_MS.name: (
        (LOG_RETENTION_MS.name, 1),
        (LOG_RETENTION_MINUTES.name, 60_000),
        (LOG_RETENTION_HOURS.name, _HOUR_MS),
    ),
    SEGMENT_MS.name: ((LOG_ROLL_MS.name, 1), (LOG_ROLL_HOURS.name, _HOUR_MS)),
}


def _milliseconds(value: Any, unit_ms: int) -> int:
    """A negative time is no limit, whatever the unit."""
    return -1 if value < 0 else value * unit_ms


def topic_defaults(broker: Mapping[str, object]) -> dict[str, object]:
    """What the broker's parsed values say about topic keys, by topic key."""
    defaults: dict[str, object] = {}
    for key in TOPIC_KEYS:
        for name, unit_ms in _UNIT_SYNONYMS.get(key.name, ()):
            if broker.get(name) is not None:
                defaults[key.name] = _milliseconds(broker[name], unit_ms)
                break
        if key.synonym and key.synonym in broker and key.name not in _UNIT_SYNONYMS:
            defaults[key.name] = broker[key.synonym]
    return defaults


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The topic keys that a log obeys; each field is the key with dots made underscores."""

    cleanup_policy: tuple[str, ...] = CLEANUP_POLICY.default
    compression_type: str = COMPRESSION_TYPE.default
    delete_retention_ms: int = DELETE_RETENTION_MS.default
    file_delete_delay_ms: int = FILE_DELETE_DELAY_MS.default
    flush_messages: int = FLUSH_MESSAGES.default
    flush_ms: int = FLUSH_MS.default
    index_interval_bytes: int = INDEX_INTERVAL_BYTES.default
    max_compaction_lag_ms: int = MAX_COMPACTION_LAG_MS.default
    max_message_bytes: int = MAX_MESSAGE_BYTES.default
    message_timestamp_after_max_ms: int = MESSAGE_TIMESTAMP_AFTER_MAX_MS.default
    message_timestamp_before_max_ms: int = MESSAGE_TIMESTAMP_BEFORE_MAX_MS.default
    message_timestamp_type: str = MESSAGE_TIMESTAMP_TYPE.default
    min_cleanable_dirty_ratio: float = MIN_CLEANABLE_DIRTY_RATIO.default
    min_compaction_lag_ms: int = MIN_COMPACTION_LAG_MS.default
    min_insync_replicas: int = MIN_INSYNC_REPLICAS.default
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
        return cls(**{field: values[keys[field]] for field in cls.__dataclass_fields__})

    @property
    def compact(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def delete(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def roll_ms(self) -> int:
        """The active segment is not compacted, so max.compaction.lag.ms bounds its age, too."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"
