"""Settings of the group coordinator, with Kafka's names and defaults."""

from ottla.protocol.config import (
    ConfigKey,
    ConfigValues,
    at_least,
    declared_keys,
    each_of,
    int_key,
    list_key,
    long_key,
    one_of,
    short_key,
    string_key,
)
from ottla.protocol.entities import entity

_INT_MAX = 2**31 - 1
_MINUTE_MS = 60_000


def _integer(name: str, default: int, doc: str, low: int = 1) -> ConfigKey[int]:
    return int_key(name, default, doc, validator=at_least(low))


def _protocols_problem(protocols: tuple[str, ...]) -> str | None:
    if "classic" not in protocols:
        return "must have classic"
    return each_of("classic", "consumer", "share", "streams")(protocols)


GROUP_COORDINATOR_REBALANCE_PROTOCOLS: ConfigKey[tuple[str, ...]] = list_key(
    "group.coordinator.rebalance.protocols",
    ("classic", "consumer", "streams"),
    "The group protocols to serve. Without consumer or streams, such groups (KIP-848, KIP-1071) "
    "are refused; share groups have the feature share.version.",
    _protocols_problem,
)
GROUP_MIN_SESSION_TIMEOUT_MS = _integer(
    "group.min.session.timeout.ms",
    6_000,
    "The shortest session timeout of classic group members.",
)
GROUP_MAX_SESSION_TIMEOUT_MS = _integer(
    "group.max.session.timeout.ms",
    1_800_000,
    "The longest session timeout of classic group members.",
)
GROUP_INITIAL_REBALANCE_DELAY_MS = _integer(
    "group.initial.rebalance.delay.ms",
    3_000,
    "How long an empty classic group waits for more members before its first rebalance ends: each"
    " member restarts the delay, up to the rebalance timeout.",
    low=0,
)
GROUP_MAX_SIZE = _integer(
    "group.max.size", _INT_MAX, "Maximum number of members of a classic group."
)
OFFSETS_RETENTION_MINUTES = _integer(
    "offsets.retention.minutes",
    7 * 24 * 60,
    "How long committed offsets are kept after their group has lost its last member, or, for a"
    " topic that the group no longer subscribes to and for groups without members, after the last"
    " commit.",
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = long_key(
    "offsets.retention.check.interval.ms",
    600_000,
    "How often to look for expired offsets.",
    validator=at_least(1),
)
OFFSETS_COMMIT_TIMEOUT_MS = _integer(
    "offsets.commit.timeout.ms",
    5000,
    "How long a request to a group coordinator waits until its change is replicated.",
)
OFFSETS_TOPIC_NUM_PARTITIONS = _integer(
    "offsets.topic.num.partitions",
    50,
    "The number of partitions of __consumer_offsets; it cannot change once the topic exists.",
)
OFFSETS_TOPIC_REPLICATION_FACTOR = short_key(
    "offsets.topic.replication.factor",
    3,
    "The replication factor of __consumer_offsets; a smaller cluster uses all its brokers,"
    " and adds replicas when others join.",
    validator=at_least(1),
    dynamic=True,
)
OFFSETS_TOPIC_SEGMENT_BYTES = _integer(
    "offsets.topic.segment.bytes",
    100 * 1024 * 1024,
    "The segment size of __consumer_offsets, kept small so that it is compacted and loaded fast; at"
    " least 1 MiB.",
)
OFFSET_METADATA_MAX_BYTES = _integer(
    "offset.metadata.max.bytes",
    4096,
    "Maximum size of the metadata of a committed offset.",
    low=0,
)
GROUP_CONSUMER_MAX_SIZE = _integer(
    "group.consumer.max.size", _INT_MAX, "Maximum number of members of a consumer group."
)
GROUP_CONSUMER_ASSIGNORS: ConfigKey[tuple[str, ...]] = list_key(
    "group.consumer.assignors",
    ("uniform", "range"),
    "The server-side assignors of consumer groups; the first one is the default.",
    validator=each_of("uniform", "range"),
)
GROUP_CONSUMER_MIGRATION_POLICY = string_key(
    "group.consumer.migration.policy",
    "bidirectional",
    "Whether a group with members may change between the classic and the consumer protocol.",
    validator=one_of("bidirectional", "upgrade", "downgrade", "disabled"),
)
GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS = _integer(
    "group.consumer.regex.refresh.interval.ms",
    10 * _MINUTE_MS,
    "How often regular-expression subscriptions are resolved again while no topic changes, so "
    "that changed ACLs take effect.",
    low=10_000,
)

BROKER_KEYS = declared_keys(globals())


@entity
class GroupConfig:
    """The configuration of the coordinator."""

    min_session_timeout_ms: int = GROUP_MIN_SESSION_TIMEOUT_MS.default
    max_session_timeout_ms: int = GROUP_MAX_SESSION_TIMEOUT_MS.default
    initial_rebalance_delay_ms: int = GROUP_INITIAL_REBALANCE_DELAY_MS.default
    max_size: int = GROUP_MAX_SIZE.default
    offsets_retention_ms: int = OFFSETS_RETENTION_MINUTES.default * _MINUTE_MS
    offsets_retention_check_interval_ms: int = OFFSETS_RETENTION_CHECK_INTERVAL_MS.default
    offsets_commit_timeout_ms: int = OFFSETS_COMMIT_TIMEOUT_MS.default
    offset_metadata_max_bytes: int = OFFSET_METADATA_MAX_BYTES.default
    consumer_max_size: int = GROUP_CONSUMER_MAX_SIZE.default
    consumer_assignors: tuple[str, ...] = GROUP_CONSUMER_ASSIGNORS.default
    consumer_migration_policy: str = GROUP_CONSUMER_MIGRATION_POLICY.default
    regex_refresh_interval_ms: int = GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS.default

    @classmethod
    def of(cls, values: ConfigValues) -> "GroupConfig":
        return cls(
            min_session_timeout_ms=values[GROUP_MIN_SESSION_TIMEOUT_MS],
            max_session_timeout_ms=values[GROUP_MAX_SESSION_TIMEOUT_MS],
            initial_rebalance_delay_ms=values[GROUP_INITIAL_REBALANCE_DELAY_MS],
            max_size=values[GROUP_MAX_SIZE],
            offsets_retention_ms=values[OFFSETS_RETENTION_MINUTES] * _MINUTE_MS,
            offsets_retention_check_interval_ms=values[OFFSETS_RETENTION_CHECK_INTERVAL_MS],
            offsets_commit_timeout_ms=values[OFFSETS_COMMIT_TIMEOUT_MS],
            offset_metadata_max_bytes=values[OFFSET_METADATA_MAX_BYTES],
            consumer_max_size=values[GROUP_CONSUMER_MAX_SIZE],
            consumer_assignors=values[GROUP_CONSUMER_ASSIGNORS],
            consumer_migration_policy=values[GROUP_CONSUMER_MIGRATION_POLICY],
            regex_refresh_interval_ms=values[GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS],
        )
