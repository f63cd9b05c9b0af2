"""Broker keys of the controller."""

from typing import Any, Final

from ottla.controller.token_config import BROKER_KEYS as TOKEN_KEYS
from ottla.protocol.config import (
    ConfigKey,
    ConfigType,
    at_least,
    boolean_key,
    int_key,
    list_key,
    long_key,
    one_of,
    string_key,
)

NUM_PARTITIONS: Final = int_key(
    "num.partitions",
    1,
    "Partitions of topics created without a count.",
    validator=at_least(1),
    dynamic=True,
)
DEFAULT_REPLICATION_FACTOR: Final = int_key(
    "default.replication.factor",
    3,
    "Replication factor of topics created without one; a smaller cluster uses all its brokers. "
    "Apache Kafka's default is 1, which loses acknowledged records with the first disk.",
    validator=at_least(1),
    dynamic=True,
)
AUTO_CREATE_TOPICS_ENABLE: Final = boolean_key(
    "auto.create.topics.enable",
    True,
    "Whether to create a missing topic when a client asks for its metadata.",
    dynamic=True,
)
DELETE_TOPIC_ENABLE: Final = boolean_key(
    "delete.topic.enable",
    True,
    "Whether topics can be deleted.",
    dynamic=True,
)
BROKER_SESSION_TIMEOUT_MS: Final = int_key(
    "broker.session.timeout.ms",
    9_000,
    "A broker that sends no heartbeat for this long is fenced: it leads nothing until it is back."
    " A broker whose process has ended is fenced at once.",
    validator=at_least(1),
)
BROKER_HEARTBEAT_INTERVAL_MS: Final = int_key(
    "broker.heartbeat.interval.ms",
    300,
    "How often a broker sends a heartbeat to the controller.",
    validator=at_least(1),
)
AUTO_LEADER_REBALANCE_ENABLE: Final = boolean_key(
    "auto.leader.rebalance.enable",
    True,
    "Whether leadership returns to the preferred (first) replica of a partition when it is back "
    "in sync.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS: Final = long_key(
    "leader.imbalance.check.interval.seconds",
    10,
    "How often the controller looks for partitions that could return to their preferred leader. "
    "Kafka's default is 300 s.",
    validator=at_least(1),
)
MIN_INSYNC_REPLICAS: Final = ConfigKey(
    "min.insync.replicas",
    ConfigType.INT,
    1,
    "In-sync replicas required for acks=all; with fewer, writes are refused. It is the same on "
    "all brokers: only the first controller's file counts.",
    at_least(1),
    "min.insync.replicas",
)
UNCLEAN_LEADER_ELECTION_ENABLE: Final = boolean_key(
    "unclean.leader.election.enable",
    False,
    "Elect a replica that is not in sync when no other is left; acknowledged records can be lost.",
    synonym="unclean.leader.election.enable",
)
IMPORT_OPEN: Final = "open"
RECORD_IMPORT: Final = string_key(
    "record.import",
    "none",
    "Whether records are imported with their original offsets, as by restore and migrate. open: "
    "only imports are accepted; producers are refused, and nothing is removed. closed: no more "
    "imports. A topic can be open only from its creation.",
    one_of("none", IMPORT_OPEN, "closed"),
)
CONTROLLER_QUOTA_WINDOW_NUM: Final = int_key(
    "controller.quota.window.num",
    11,
    "For how many windows a client can save up unused controller_mutation_rate.",
    validator=at_least(1),
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS: Final = int_key(
    "controller.quota.window.size.seconds",
    1,
    "The size of one window of controller_mutation_rate.",
    validator=at_least(1),
)

ALL_LOG_DIRS: Final = "*"
CORDONED_LOG_DIRS: Final[ConfigKey[tuple[str, ...]]] = list_key(
    "cordoned.log.dirs",
    (),
    "Log directories of a broker that get no new partitions, or * for all (KIP-1066). A broker "
    "with all directories cordoned gets no new replicas. Set it in the metadata, as `ottla node "
    "drain` does.",
    dynamic=True,
)

BROKER_KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    NUM_PARTITIONS,
    DEFAULT_REPLICATION_FACTOR,
    AUTO_CREATE_TOPICS_ENABLE,
    DELETE_TOPIC_ENABLE,
    BROKER_SESSION_TIMEOUT_MS,
    BROKER_HEARTBEAT_INTERVAL_MS,
    AUTO_LEADER_REBALANCE_ENABLE,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
    CORDONED_LOG_DIRS,
    CONTROLLER_QUOTA_WINDOW_NUM,
    CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS,
    *TOKEN_KEYS,
)
