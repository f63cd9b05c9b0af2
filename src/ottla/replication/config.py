"""Settings of replication and of fetching, with Kafka's names and defaults."""

from typing import Final

from ottla.protocol.config import at_least, declared_keys, int_key, long_key, one_of, string_key
from ottla.storage.config import LONG_MAX

FETCH_MAX_BYTES = int_key(
    "fetch.max.bytes",
    57_671_680,
    "Maximum bytes of one fetch response.",
    at_least(1024),
)
FETCH_SESSION_SLOTS_MAX = int_key(
    "max.incremental.fetch.session.cache.slots",
    1000,
    "Maximum number of incremental fetch sessions; beyond it, the least recently used one ends.",
    at_least(0),
)
REPLICA_LAG_TIME_MAX_MS = long_key(
    "replica.lag.time.max.ms",
    30_000,
    "A follower that has not caught up with its leader for this long is not in sync.",
    at_least(1),
)
REPLICA_FETCH_WAIT_MAX_MS = int_key(
    "replica.fetch.wait.max.ms",
    500,
    "How long a leader may wait for records before it answers the fetch of a follower.",
    at_least(0),
)
REPLICA_FETCH_MIN_BYTES = int_key(
    "replica.fetch.min.bytes",
    1,
    "Minimum bytes that a follower's fetch waits for.",
    at_least(0),
)
REPLICA_FETCH_MAX_BYTES = int_key(
    "replica.fetch.max.bytes",
    1_048_576,
    "Maximum bytes that a follower fetches per partition; a larger batch is fetched whole.",
    at_least(0),
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = int_key(
    "replica.fetch.response.max.bytes",
    10_485_760,
    "Maximum bytes that a follower fetches at once; a larger batch is fetched whole.",
    at_least(0),
)
REPLICA_FETCH_BACKOFF_MS = int_key(
    "replica.fetch.backoff.ms",
    1000,
    "The longest wait before a follower retries; the first waits are much shorter.",
    at_least(20),
)
REPLICA_SOCKET_TIMEOUT_MS = int_key(
    "replica.socket.timeout.ms",
    30_000,
    "How long a follower waits for a response, beyond the time that the leader may wait.",
    at_least(1),
)
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"

REPLICA_SELECTOR_CLASS = string_key(
    "replica.selector.class",
    "",
    "Where consumers read: from the leader, or with Kafka's RackAwareReplicaSelector from the "
    "in-sync replica in their rack (client.rack).",
    one_of("", _LEADER_SELECTOR, RACK_AWARE_SELECTOR),
)

# Kafka shows these three only where they are set.
LEADER_REPLICATION_THROTTLED_RATE = long_key(
    "leader.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that this broker sends to replicas that are not in sync and are listed in "
    "leader.replication.throttled.replicas of their topics.",
    at_least(0),
    dynamic=True,
    internal=True,
)
FOLLOWER_REPLICATION_THROTTLED_RATE = long_key(
    "follower.replication.throttled.rate",
    LONG_MAX,
    "Bytes per second that this broker fetches for replicas that are not in sync and are listed "
    "in follower.replication.throttled.replicas of their topics.",
    at_least(0),
    dynamic=True,
    internal=True,
)

REPLICA_ALTER_LOG_DIRS_IO_MAX = long_key(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG_MAX,
    "Bytes per second for moving replicas between this broker's log directories.",
    at_least(0),
    dynamic=True,
    internal=True,
)

BROKER_KEYS = declared_keys(globals())
