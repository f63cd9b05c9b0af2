"""The log settings of a broker, with Kafka's names and defaults.

These are the keys that the log manager obeys, and the defaults of the topic keys: `topic_defaults`
turns a broker's values into the layer below the topic's own.
"""

import sys
from collections.abc import Mapping
from typing import Any

from ottla.protocol.config import (
    ConfigKey,
    at_least,
    between,
    boolean_key,
    declared_keys,
    double_key,
    int_key,
    list_key,
    long_key,
    one_of,
    string_key,
)
from ottla.storage import config
from ottla.storage.config import LONG_MAX, TOPIC_KEYS

_HOUR_MS = 3_600_000
_DAY_MS = 24 * _HOUR_MS


def _long_or_unset(name: str, doc: str, *, dynamic: bool = False) -> ConfigKey[int | None]:
    return long_key(name, None, doc, dynamic=dynamic)


LOG_DIRS = list_key(
    "log.dirs",
    ("data",),
    "The directories that hold the partitions.",
    lambda directories: None if directories else "must name at least one directory",
)
FLUSH_POLICY = string_key(
    "flush.policy",
    "ack",
    "When appended records are synced to disk: before they are acknowledged (ack), every "
    "flush.interval.ms (interval), or whenever the operating system does it (os).",
    one_of("ack", "interval", "os"),
)
FLUSH_INTERVAL_MS = long_key(
    "flush.interval.ms",
    1000,
    "The time between syncs with flush.policy=interval.",
    at_least(1),
)
LOG_RETENTION_CHECK_INTERVAL_MS = long_key(
    "log.retention.check.interval.ms",
    300_000,
    "How often to look for segments to remove.",
    at_least(1),
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = int_key(
    "log.flush.offset.checkpoint.interval.ms",
    60_000,
    "How often the recovery point of each log is written.",
    at_least(1),
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = int_key(
    "log.flush.start.offset.checkpoint.interval.ms",
    60_000,
    "How often the log start offset of each log is written.",
    at_least(1),
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = int_key(
    "num.recovery.threads.per.data.dir",
    2,
    "Threads per log directory that load logs at startup and flush them at shutdown.",
    at_least(1),
    dynamic=True,
)
LOG_OPEN_FILES_MAX = int_key(
    "log.open.files.max",
    2000,
    "Maximum number of segment files kept open.",
    at_least(16),
)
LOG_CLEANER_ENABLE = boolean_key("log.cleaner.enable", True, "Whether logs are compacted.")
LOG_CLEANER_THREADS = int_key(
    "log.cleaner.threads",
    1,
    "Threads that compact logs.",
    at_least(0),
    dynamic=True,
)
LOG_CLEANER_BACKOFF_MS = long_key(
    "log.cleaner.backoff.ms",
    15_000,
    "The pause when there is nothing to compact.",
    at_least(0),
    dynamic=True,
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = long_key(
    "log.cleaner.dedupe.buffer.size",
    128 << 20,
    "Memory for the keys of records being compacted, for all threads.",
    at_least(1 << 20),
    dynamic=True,
)
LOG_CLEANER_IO_BUFFER_SIZE = int_key(
    "log.cleaner.io.buffer.size",
    512 << 10,
    "Memory for compaction's reads and writes, for all threads.",
    at_least(0),
    dynamic=True,
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = double_key(
    "log.cleaner.io.max.bytes.per.second",
    sys.float_info.max,
    "Maximum bytes per second that compaction reads and writes.",
    lambda rate: None if rate > 0 else "must be more than 0",
    dynamic=True,
)
LOG_SCRUB_BYTES_PER_SECOND = long_key(
    "log.scrub.bytes.per.second",
    2 << 20,
    "How many bytes of closed segments are checked per second in the background, for each log "
    "directory. 0 checks only what readers found suspect.",
    at_least(0),
)
LOG_SCRUB_INTERVAL_MS = long_key(
    "log.scrub.interval.ms",
    _DAY_MS,
    "The shortest time between two checks of the same segment.",
    at_least(0),
)
PRODUCER_ID_EXPIRATION_MS = int_key(
    "producer.id.expiration.ms",
    _DAY_MS,
    "How long the state of an idle producer is kept.",
    at_least(1),
    dynamic=True,
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = int_key(
    "producer.id.expiration.check.interval.ms",
    600_000,
    "How often to look for expired producer ids.",
    at_least(1),
)
LOG_RETENTION_MS = _long_or_unset(
    "log.retention.ms",
    "The default of retention.ms; log.retention.minutes if unset.",
    dynamic=True,
)
LOG_RETENTION_MINUTES: ConfigKey[int | None] = int_key(
    "log.retention.minutes",
    None,
    "The default of retention.ms in minutes; log.retention.hours if unset.",
)
LOG_RETENTION_HOURS = int_key("log.retention.hours", 168, "The default of retention.ms in hours.")
LOG_ROLL_MS = _long_or_unset(
    "log.roll.ms", "The default of segment.ms; log.roll.hours if unset.", dynamic=True
)
LOG_ROLL_HOURS = int_key(
    "log.roll.hours",
    168,
    "The default of segment.ms in hours.",
    between(1, 2**31 - 1),
)
LOG_ROLL_JITTER_MS = _long_or_unset(
    "log.roll.jitter.ms",
    "The default of segment.jitter.ms; log.roll.jitter.hours if unset.",
    dynamic=True,
)
LOG_ROLL_JITTER_HOURS = int_key(
    "log.roll.jitter.hours",
    0,
    "The default of segment.jitter.ms in hours.",
    at_least(0),
)
INTERNAL_LOG_SEGMENT_BYTES: ConfigKey[int | None] = int_key(
    "internal.log.segment.bytes",
    None,
    "Takes precedence over log.segment.bytes, for tests that want small segments.",
    lambda size: "Value must be at least 1" if size is not None and size < 1 else None,
    internal=True,
)
LOG_FLUSH_INTERVAL_MS = _long_or_unset(
    "log.flush.interval.ms",
    "The default of flush.ms; log.flush.scheduler.interval.ms if unset.",
    dynamic=True,
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = long_key(
    "log.flush.scheduler.interval.ms",
    LONG_MAX,
    "The default of flush.ms where log.flush.interval.ms is unset.",
)

# By the broker key for milliseconds: the keys that set the same, each with its unit in
# milliseconds, the strongest first.
_UNITS: dict[str, tuple[tuple[ConfigKey[Any], int], ...]] = {
    LOG_RETENTION_MS.name: (
        (LOG_RETENTION_MS, 1),
        (LOG_RETENTION_MINUTES, 60_000),
        (LOG_RETENTION_HOURS, _HOUR_MS),
    ),
    LOG_ROLL_MS.name: ((LOG_ROLL_MS, 1), (LOG_ROLL_HOURS, _HOUR_MS)),
    LOG_ROLL_JITTER_MS.name: ((LOG_ROLL_JITTER_MS, 1), (LOG_ROLL_JITTER_HOURS, _HOUR_MS)),
    LOG_FLUSH_INTERVAL_MS.name: (
        (LOG_FLUSH_INTERVAL_MS, 1),
        (LOG_FLUSH_SCHEDULER_INTERVAL_MS, 1),
    ),
}


def _broker_key(key: ConfigKey[Any]) -> ConfigKey[Any]:
    assert key.synonym is not None
    return ConfigKey(
        key.synonym,
        key.type,
        key.default,
        f"The default of the topic key {key.name}. {key.doc}",
        key.validator,
        dynamic=True,
        has_effect=key.has_effect,
    )


BROKER_KEYS = (
    *declared_keys(globals()),
    *(_broker_key(key) for key in TOPIC_KEYS if key.synonym and key.synonym not in _UNITS),
)


def _milliseconds(value: Any, unit_ms: int) -> int:
    """A negative time means no limit, whatever the unit."""
    return -1 if value < 0 else value * unit_ms


def topic_defaults(broker: Mapping[str, object]) -> dict[str, object]:
    """The topic defaults that the broker's parsed values set, by topic key."""
    defaults: dict[str, object] = {}
    for key in TOPIC_KEYS:
        synonym = key.synonym or ""
        if synonym in broker and synonym not in _UNITS:
            defaults[key.name] = broker[synonym]
        for unit, unit_ms in _UNITS.get(synonym, ()):
            if broker.get(unit.name) is not None:
                defaults[key.name] = _milliseconds(broker[unit.name], unit_ms)
                break
    if broker.get(INTERNAL_LOG_SEGMENT_BYTES.name) is not None:
        defaults[config.SEGMENT_BYTES.name] = broker[INTERNAL_LOG_SEGMENT_BYTES.name]
    return defaults
