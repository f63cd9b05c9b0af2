"""Keys that the controller obeys."""

from typing import Any, Final

from ottla.controller.token_config import BROKER_KEYS as TOKEN_KEYS
from ottla.protocol.config import ConfigKey, ConfigType, at_least, one_of

NUM_PARTITIONS: Final = ConfigKey(
    "num.partitions",
    ConfigType.INT,
    1,
    "Partitions of topics created without a count.",
    validator=at_least(1),
    dynamic=True,
)
DEFAULT_REPLICATION_FACTOR: Final = ConfigKey(
    "default.replication.factor",
    ConfigType.INT,
    3,
    "Replication factor of topics created without one; a smaller cluster uses all its brokers. "
    "Apache Kafka's default is 1, which loses acknowledged records with the first disk.",
    validator=at_least(1),
    dynamic=True,
)
AUTO_CREATE_TOPICS_ENABLE: Final = ConfigKey(
    "auto.create.topics.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether to create a missing topic when a client asks for its metadata.",
    dynamic=True,
)
DELETE_TOPIC_ENABLE: Final = ConfigKey(
    "delete.topic.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether topics can be deleted.",
    dynamic=True,
)
BROKER_SESSION_TIMEOUT_MS: Final = ConfigKey(
    "broker.session.timeout.ms",
    ConfigType.INT,
    9_000,
    "A broker that sends no heartbeat for this long is fenced: it leads nothing until it is back."
    " A broker whose process has ended is fenced at once.",
    validator=at_least(1),
)
BROKER_HEARTBEAT_INTERVAL_MS: Final = ConfigKey(
    "broker.heartbeat.interval.ms",
    ConfigType.INT,
    300,
    "How often a broker sends a heartbeat to the controller.",
    validator=at_least(1),
)
AUTO_LEADER_REBALANCE_ENABLE: Final = ConfigKey(
    "auto.leader.rebalance.enable",
    ConfigType.BOOLEAN,
    True,
    "Whether leadership returns to the preferred (first) replica of a partition when it is back "
    "in sync.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS: Final = ConfigKey(
    "leader.imbalance.check.interval.seconds",
    ConfigType.LONG,
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
UNCLEAN_LEADER_ELECTION_ENABLE: Final = ConfigKey(
    "unclean.leader.election.enable",
    ConfigType.BOOLEAN,
    False,
    "Elect a replica that is not in sync when no other is left; acknowledged records can be lost.",
    synonym="unclean.leader.election.enable",
)
IMPORT_OPEN: Final = "open"
RECORD_IMPORT: Final = ConfigKey(
    "record.import",
    ConfigType.STRING,
    "none",
    "Whether records are imported with their original offsets, as by restore and migrate. open: "
    "only imports are accepted; producers are refused, and nothing is removed. closed: no more "
    "imports. A topic can be open only from its creation.",
    one_of("none", IMPORT_OPEN, "closed"),
)
CONTROLLER_QUOTA_WINDOW_NUM: Final = ConfigKey(
    "controller.quota.window.num",
    ConfigType.INT,
    11,
    "For how many windows a client can save up unused controller_mutation_rate.",
    validator=at_least(1),
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS: Final = ConfigKey(
    "controller.quota.window.size.seconds",
    ConfigType.INT,
    1,
    "The size of one window of controller_mutation_rate.",
    validator=at_least(1),
)

ALL_LOG_DIRS: Final = "*"
CORDONED_LOG_DIRS: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    "cordoned.log.dirs",
    ConfigType.LIST,
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
