"""The configuration of replication and of fetching, with Kafka's names and defaults."""

from typing import Any, Final

from ottla.protocol.config import ConfigKey, ConfigType, at_least, one_of
from ottla.storage.config import LONG_MAX

FETCH_MAX_BYTES = ConfigKey(
    "fetch.max.bytes",
    ConfigType.INT,
    57_671_680,
    "Maximum bytes of one fetch response.",
    at_least(1024),
)
FETCH_SESSION_SLOTS_MAX = ConfigKey(
    "max.incremental.fetch.session.cache.slots",
    ConfigType.INT,
    1000,
    "Maximum number of incremental fetch sessions; beyond it, the least recently used one ends.",
    at_least(0),
)
REPLICA_LAG_TIME_MAX_MS = ConfigKey(
    "replica.lag.time.max.ms",
    ConfigType.LONG,
    30_000,
    "A follower that has not caught up with its leader for this long is not in sync.",
    at_least(1),
)
REPLICA_FETCH_WAIT_MAX_MS = ConfigKey(
    "replica.fetch.wait.max.ms",
    ConfigType.INT,
    500,
    "How long a leader may wait for records before it answers the fetch of a follower.",
    at_least(0),
)
REPLICA_FETCH_MIN_BYTES = ConfigKey(
    "replica.fetch.min.bytes",
    ConfigType.INT,
    1,
    "Minimum bytes that a follower's fetch waits for.",
    at_least(0),
)
REPLICA_FETCH_MAX_BYTES = ConfigKey(
    "replica.fetch.max.bytes",
    ConfigType.INT,
    1_048_576,
    "Maximum bytes that a follower fetches per partition; a larger batch is fetched whole.",
    at_least(0),
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = ConfigKey(
    "replica.fetch.response.max.bytes",
    ConfigType.INT,
    10_485_760,
    "Maximum bytes that a follower fetches at once; a larger batch is fetched whole.",
    at_least(0),
)
REPLICA_FETCH_BACKOFF_MS = ConfigKey(
    "replica.fetch.backoff.ms",
    ConfigType.INT,
    1000,
    "The longest wait before a follower retries; the first waits are much shorter.",
    at_least(20),
)
REPLICA_SOCKET_TIMEOUT_MS = ConfigKey(
    "replica.socket.timeout.ms",
    ConfigType.INT,
    30_000,
    "How long a follower waits for a response, beyond the time that the leader may wait.",
    at_least(1),
)
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"

REPLICA_SELECTOR_CLASS = ConfigKey(
    "replica.selector.class",
    ConfigType.STRING,
    "",
    "Where consumers read: from the leader, or with Kafka's RackAwareReplicaSelector from the "
    "in-sync replica in their rack (client.rack).",
    one_of("", _LEADER_SELECTOR, RACK_AWARE_SELECTOR),
)

LEADER_REPLICATION_THROTTLED_RATE = ConfigKey(
    "leader.replication.throttled.rate",
    ConfigType.LONG,
    LONG_MAX,
    "Bytes per second that this broker sends to replicas that are not in sync and are listed in "
    "leader.replication.throttled.replicas of their topics.",
    at_least(0),
    dynamic=True,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = ConfigKey(
    "follower.replication.throttled.rate",
    ConfigType.LONG,
    LONG_MAX,
    "Bytes per second that this broker fetches for replicas that are not in sync and are listed "
    "in follower.replication.throttled.replicas of their topics.",
    at_least(0),
    dynamic=True,
)

REPLICA_ALTER_LOG_DIRS_IO_MAX = ConfigKey(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    ConfigType.LONG,
    LONG_MAX,
    "Bytes per second for moving replicas between this broker's log directories.",
    at_least(0),
    dynamic=True,
)

BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    FETCH_MAX_BYTES,
    FETCH_SESSION_SLOTS_MAX,
    FOLLOWER_REPLICATION_THROTTLED_RATE,
    LEADER_REPLICATION_THROTTLED_RATE,
    REPLICA_ALTER_LOG_DIRS_IO_MAX,
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_LAG_TIME_MAX_MS,
    REPLICA_SELECTOR_CLASS,
    REPLICA_SOCKET_TIMEOUT_MS,
)
