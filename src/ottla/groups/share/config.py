"""Settings of share groups, with Kafka's names and defaults; back-off and parking are Ottla's own.

A group has its own value of each group key (resource type GROUP), or that of the broker key with
the same name prefixed with `group.`.
"""

import re
from typing import Any, TypeVar

from ottla.groups.bounded_keys import INT_MAX, Limit, bounded_key, broker_key_of, broker_keys_of
from ottla.groups.modern.assignment_pace import Pace
from ottla.groups.modern.config import membership_keys
from ottla.protocol.config import (
    ConfigKey,
    ConfigType,
    ConfigValues,
    Validator,
    between,
    int_key,
    one_of,
    short_key,
)
from ottla.protocol.entities import entity

T = TypeVar("T")

TOPIC_PLACEHOLDER = "{topic}"
DEAD_LETTER_PREFIX = "dlq."
NO_LIMIT = -1  # Of deliveries.
_ENDLESS = 1 << 31  # Larger than any delivery count.
_MULTIPLIER_MAX = 1_000
_BY_DURATION = re.compile(
    r"by_duration:P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)


def reset_duration_ms(text: str) -> int | None:
    """How far back `by_duration:PnDTnHnMn.nS` goes; None for the other values."""
    matched = _BY_DURATION.fullmatch(text)
    if matched is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in matched.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def _reset_problem(text: str) -> str | None:
    if text in {"latest", "earliest"} or reset_duration_ms(text) is not None:
        return None
    return "must be latest, earliest or by_duration: and a duration such as PT1H30M"


def _group_key(
    name: str, kind: ConfigType, default: T, doc: str, validator: Validator[T] | None = None
) -> ConfigKey[T]:
    return ConfigKey(name, kind, default, doc, validator=validator, synonym=f"group.{name}")


MEMBERSHIP = membership_keys("share")
SHARE_RECORD_LOCK_DURATION_MS = bounded_key(
    "share.record.lock.duration.ms",
    Limit(30_000, least=1_000, most=3_600_000),
    "How long a share consumer holds a record before it goes to another.",
    low=Limit(15_000, least=1_000, most=30_000),
    high=Limit(60_000, least=30_000, most=3_600_000),
)
SHARE_DELIVERY_COUNT_LIMIT = bounded_key(
    "share.delivery.count.limit",
    Limit(5, least=2, most=10),
    "How often a share group delivers a record before it gives up.",
    low=Limit(2, least=2, most=5),
    high=Limit(10, least=5, most=25),
)
SHARE_DELIVERY_ATTEMPTS_MAX = _group_key(
    "share.delivery.attempts.max",
    ConfigType.INT,
    0,
    "How often a share group delivers a record before it gives up, if Kafka's "
    "`share.delivery.count.limit` allows too few: 1 to 1000, or -1 for no limit. 0 uses "
    "`share.delivery.count.limit`.",
    between(NO_LIMIT, 1_000),
)
SHARE_PARTITION_MAX_RECORD_LOCKS = bounded_key(
    "share.partition.max.record.locks",
    Limit(2_000, least=100, most=10_000),
    "Maximum records that a share group has in flight in one partition.",
    low=Limit(100, least=100, most=2_000),
    high=Limit(4_000, least=2_000, most=10_000),
)
SHARE_AUTO_OFFSET_RESET = _group_key(
    "share.auto.offset.reset",
    ConfigType.STRING,
    "latest",
    "Where a share group starts in a partition: `latest`, `earliest`, or some time ago, such as "
    "`by_duration:P1DT12H`.",
    _reset_problem,
)
SHARE_ISOLATION_LEVEL = _group_key(
    "share.isolation.level",
    ConfigType.STRING,
    "read_uncommitted",
    "Whether a share group gets records of open and aborted transactions.",
    one_of("read_uncommitted", "read_committed"),
)
SHARE_RENEW_ACKNOWLEDGE_ENABLE = _group_key(
    "share.renew.acknowledge.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether share consumers can renew their record locks.",
)
SHARE_RETRY_BACKOFF_MS = _group_key(
    "share.retry.backoff.ms",
    ConfigType.INT,
    0,
    "How long a share group waits before it redelivers a record whose first delivery was released"
    " or timed out. 0 makes it available at once.",
    between(0, INT_MAX),
)
SHARE_RETRY_BACKOFF_MULTIPLIER = _group_key(
    "share.retry.backoff.multiplier",
    ConfigType.DOUBLE,
    2.0,
    "The factor by which that wait grows with each delivery.",
    between(1, _MULTIPLIER_MAX),
)
SHARE_RETRY_BACKOFF_MAX_MS = _group_key(
    "share.retry.backoff.max.ms",
    ConfigType.INT,
    900_000,
    "The longest back-off before a redelivery.",
    between(0, INT_MAX),
)
SHARE_PARTITION_MAX_PARKED_RECORDS = _group_key(
    "share.partition.max.parked.records",
    ConfigType.INT,
    1_000_000,
    "How many records of a partition a share group may hold or delay, besides those in flight. "
    "Beyond that, it gets nothing new from the partition.",
    between(1_000, 10_000_000),
)
SHARE_RECORD_ORDER = _group_key(
    "share.record.order",
    ConfigType.STRING,
    "none",
    "`key`: a share group gets the records of each key one at a time and in order. While one is "
    "with a consumer, or waits for redelivery, no later record of its key in the partition is "
    "delivered; other keys are unaffected. At most 100,000 records of a partition may then be "
    "held or waiting.",
    one_of("none", "key"),
)
SHARE_DEAD_LETTER_TOPIC_NAME = _group_key(
    "errors.deadletterqueue.topic.name",
    ConfigType.STRING,
    f"{DEAD_LETTER_PREFIX}{TOPIC_PLACEHOLDER}",
    f"The topic for records that a share group gave up on; {TOPIC_PLACEHOLDER} stands for the name"
    " of their topic. It is created when first needed, with as many partitions and replicas as"
    " their topic. If empty, the records are dropped.",
)
SHARE_DEAD_LETTER_REJECTED = _group_key(
    "errors.deadletterqueue.rejected.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether rejected records also go to the dead-letter topic.",
)
SHARE_DEAD_LETTER_PENDING_MAX = _group_key(
    "errors.deadletterqueue.pending.max.records",
    ConfigType.INT,
    10_000,
    "How many records of a partition, besides those in flight, may wait for their dead letters to "
    "be written. Beyond that, a share group gets nothing new from the partition until they are "
    "written or dropped.",
    between(0, 20_000),
)
SHARE_DEAD_LETTER_COPY_RECORD = _group_key(
    "errors.deadletterqueue.copy.record.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether a dead letter contains the record's key, value and headers, or only its origin.",
)

BOUNDED_KEYS = (
    *MEMBERSHIP.bounded,
    SHARE_RECORD_LOCK_DURATION_MS,
    SHARE_DELIVERY_COUNT_LIMIT,
    SHARE_PARTITION_MAX_RECORD_LOCKS,
)
_UNBOUNDED_KEYS: tuple[ConfigKey[Any], ...] = (
    SHARE_AUTO_OFFSET_RESET,
    SHARE_ISOLATION_LEVEL,
    SHARE_RENEW_ACKNOWLEDGE_ENABLE,
    SHARE_RETRY_BACKOFF_MS,
    SHARE_RETRY_BACKOFF_MULTIPLIER,
    SHARE_RETRY_BACKOFF_MAX_MS,
    SHARE_DELIVERY_ATTEMPTS_MAX,
    SHARE_PARTITION_MAX_PARKED_RECORDS,
    SHARE_RECORD_ORDER,
    SHARE_DEAD_LETTER_TOPIC_NAME,
    SHARE_DEAD_LETTER_REJECTED,
    SHARE_DEAD_LETTER_COPY_RECORD,
    SHARE_DEAD_LETTER_PENDING_MAX,
)
GROUP_KEYS: tuple[ConfigKey[Any], ...] = (
    *(key.group_key for key in BOUNDED_KEYS),
    *_UNBOUNDED_KEYS,
)

GROUP_SHARE_MAX_SIZE = int_key(
    "group.share.max.size",
    200,
    "Maximum number of members of a share group.",
    validator=between(1, 1_000),
)
GROUP_SHARE_MAX_SHARE_SESSIONS = int_key(
    "group.share.max.share.sessions",
    2_000,
    "Maximum number of share consumers that can fetch from a broker at a time.",
    validator=between(1, INT_MAX),
)
STATE_TOPIC_NUM_PARTITIONS = int_key(
    "share.coordinator.state.topic.num.partitions",
    50,
    "The number of partitions of __share_group_state; it cannot change once the topic exists.",
    validator=between(1, INT_MAX),
)
STATE_TOPIC_REPLICATION_FACTOR = short_key(
    "share.coordinator.state.topic.replication.factor",
    3,
    "The replication factor of __share_group_state; a smaller cluster uses all its brokers,"
    " and adds replicas when others join.",
    validator=between(1, 32_767),
    dynamic=True,
)
STATE_TOPIC_MIN_ISR = short_key(
    "share.coordinator.state.topic.min.isr",
    2,
    "min.insync.replicas of __share_group_state; never more than it has replicas.",
    validator=between(1, 32_767),
)
STATE_TOPIC_SEGMENT_BYTES = int_key(
    "share.coordinator.state.topic.segment.bytes",
    100 * 1024 * 1024,
    "The segment size of __share_group_state; at least 1 MiB.",
    validator=between(1, INT_MAX),
)
SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT = int_key(
    "share.coordinator.snapshot.update.records.per.snapshot",
    500,
    "How many updates of a share-partition are written before a full snapshot.",
    validator=between(0, 500),
)
STATE_TOPIC_PRUNE_INTERVAL_MS = int_key(
    "share.coordinator.state.topic.prune.interval.ms",
    300_000,
    "How often to look for records of __share_group_state that are no longer needed.",
    validator=between(1, INT_MAX),
)

BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *broker_keys_of(BOUNDED_KEYS),
    *map(broker_key_of, _UNBOUNDED_KEYS),
    MEMBERSHIP.rebalance_heartbeat_interval_ms,
    GROUP_SHARE_MAX_SIZE,
    GROUP_SHARE_MAX_SHARE_SESSIONS,
    STATE_TOPIC_NUM_PARTITIONS,
    STATE_TOPIC_REPLICATION_FACTOR,
    STATE_TOPIC_MIN_ISR,
    STATE_TOPIC_SEGMENT_BYTES,
    SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT,
    STATE_TOPIC_PRUNE_INTERVAL_MS,
)


def _delivery_count_limit(group: ConfigValues, broker: ConfigValues) -> int:
    attempts = group[SHARE_DELIVERY_ATTEMPTS_MAX]
    if attempts == NO_LIMIT:
        return _ENDLESS
    return attempts or SHARE_DELIVERY_COUNT_LIMIT.value(group, broker)


@entity
class ShareConfig:
    """The effective settings of a share group."""

    session_timeout_ms: int = MEMBERSHIP.session_timeout_ms.group_key.default
    pace: Pace = MEMBERSHIP.default_pace
    max_size: int = GROUP_SHARE_MAX_SIZE.default
    record_lock_duration_ms: int = SHARE_RECORD_LOCK_DURATION_MS.group_key.default
    delivery_count_limit: int = SHARE_DELIVERY_COUNT_LIMIT.group_key.default
    partition_max_record_locks: int = SHARE_PARTITION_MAX_RECORD_LOCKS.group_key.default
    auto_offset_reset: str = SHARE_AUTO_OFFSET_RESET.default
    committed_only: bool = False
    renewals: bool = SHARE_RENEW_ACKNOWLEDGE_ENABLE.default
    retry_backoff_ms: int = SHARE_RETRY_BACKOFF_MS.default
    retry_backoff_multiplier: float = SHARE_RETRY_BACKOFF_MULTIPLIER.default
    retry_backoff_max_ms: int = SHARE_RETRY_BACKOFF_MAX_MS.default
    partition_max_parked: int = SHARE_PARTITION_MAX_PARKED_RECORDS.default
    key_order: bool = False
    dead_letter_topic: str = SHARE_DEAD_LETTER_TOPIC_NAME.default
    dead_letter_rejected: bool = SHARE_DEAD_LETTER_REJECTED.default
    dead_letter_copy_record: bool = SHARE_DEAD_LETTER_COPY_RECORD.default
    dead_letter_pending_max: int = SHARE_DEAD_LETTER_PENDING_MAX.default

    @classmethod
    def of(cls, group: ConfigValues, broker: ConfigValues) -> "ShareConfig":
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return cls(
            session_timeout_ms=MEMBERSHIP.session_timeout_ms.value(group, broker),
            pace=MEMBERSHIP.pace(group, broker),
            max_size=broker[GROUP_SHARE_MAX_SIZE],
            record_lock_duration_ms=SHARE_RECORD_LOCK_DURATION_MS.value(group, broker),
            delivery_count_limit=_delivery_count_limit(group, broker),
            partition_max_record_locks=SHARE_PARTITION_MAX_RECORD_LOCKS.value(group, broker),
            auto_offset_reset=group[SHARE_AUTO_OFFSET_RESET],
            committed_only=group[SHARE_ISOLATION_LEVEL] == "read_committed",
            renewals=group[SHARE_RENEW_ACKNOWLEDGE_ENABLE],
            retry_backoff_ms=group[SHARE_RETRY_BACKOFF_MS],
            retry_backoff_multiplier=group[SHARE_RETRY_BACKOFF_MULTIPLIER],
            retry_backoff_max_ms=group[SHARE_RETRY_BACKOFF_MAX_MS],
            partition_max_parked=group[SHARE_PARTITION_MAX_PARKED_RECORDS],
            key_order=group[SHARE_RECORD_ORDER] == "key",
            dead_letter_topic=group[SHARE_DEAD_LETTER_TOPIC_NAME],
            dead_letter_rejected=group[SHARE_DEAD_LETTER_REJECTED],
            dead_letter_copy_record=group[SHARE_DEAD_LETTER_COPY_RECORD],
            dead_letter_pending_max=group[SHARE_DEAD_LETTER_PENDING_MAX],
        )
