"""The configuration of replication and of fetching, with Kafka's names and defaults."""

from typing import Any

from ottla.protocol.config import ConfigKey, ConfigType, at_least

FETCH_MAX_BYTES = ConfigKey(
    "fetch.max.bytes",
    ConfigType.INT,
    57_671_680,
    "The most bytes that one fetch response carries.",
    at_least(1024),
)
FETCH_SESSION_SLOTS_MAX = ConfigKey(
    "max.incremental.fetch.session.cache.slots",
    ConfigType.INT,
    1000,
    "How many incremental fetch sessions are kept; past that the least recently used one ends.",
    at_least(0),
)
REPLICA_LAG_TIME_MAX_MS = ConfigKey(
    "replica.lag.time.max.ms",
    ConfigType.LONG,
    30_000,
    "A follower that has not had all of its leader's log for this long is not in sync.",
    at_least(1),
)

BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    FETCH_MAX_BYTES,
    FETCH_SESSION_SLOTS_MAX,
    REPLICA_LAG_TIME_MAX_MS,
)
