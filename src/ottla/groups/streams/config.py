"""Settings of streams groups, with Kafka's names and defaults."""

from typing import Any

from ottla.groups.bounded_keys import INT_MAX, broker_key_of, broker_keys_of
from ottla.groups.modern.assignment_pace import Pace
from ottla.groups.modern.config import membership_keys
from ottla.protocol.config import ConfigKey, ConfigValues, at_least, between, int_key
from ottla.protocol.entities import entity

MEMBERSHIP = membership_keys("streams", assigned="task")
STREAMS_NUM_STANDBY_REPLICAS = int_key(
    "streams.num.standby.replicas",
    0,
    "Number of standby replicas of each stateful task.",
    validator=at_least(0),
    synonym="group.streams.num.standby.replicas",
)
STREAMS_INITIAL_REBALANCE_DELAY_MS = int_key(
    "streams.initial.rebalance.delay.ms",
    3_000,
    "How long a new streams group waits for more members before it assigns tasks.",
    validator=at_least(0),
    synonym="group.streams.initial.rebalance.delay.ms",
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS = broker_key_of(STREAMS_NUM_STANDBY_REPLICAS)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = int_key(
    "group.streams.max.standby.replicas",
    2,
    "The most that streams.num.standby.replicas counts for.",
    validator=at_least(0),
)
GROUP_STREAMS_MAX_SIZE = int_key(
    "group.streams.max.size",
    INT_MAX,
    "Maximum number of members of a streams group.",
    validator=between(1, INT_MAX),
)

BOUNDED_KEYS = MEMBERSHIP.bounded
GROUP_KEYS: tuple[ConfigKey[Any], ...] = (
    *(key.group_key for key in BOUNDED_KEYS),
    STREAMS_NUM_STANDBY_REPLICAS,
    STREAMS_INITIAL_REBALANCE_DELAY_MS,
)
BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *broker_keys_of(BOUNDED_KEYS),
    GROUP_STREAMS_NUM_STANDBY_REPLICAS,
    GROUP_STREAMS_MAX_STANDBY_REPLICAS,
    broker_key_of(STREAMS_INITIAL_REBALANCE_DELAY_MS),
    GROUP_STREAMS_MAX_SIZE,
    MEMBERSHIP.rebalance_heartbeat_interval_ms,
)


@entity
class StreamsConfig:
    """The effective settings of a streams group."""

    session_timeout_ms: int = MEMBERSHIP.session_timeout_ms.group_key.default
    standby_count: int = STREAMS_NUM_STANDBY_REPLICAS.default
    initial_delay_ms: int = STREAMS_INITIAL_REBALANCE_DELAY_MS.default
    max_size: int = GROUP_STREAMS_MAX_SIZE.default
    pace: Pace = MEMBERSHIP.default_pace

    @classmethod
    def of(cls, group: ConfigValues, broker: ConfigValues) -> "StreamsConfig":
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return cls(
            session_timeout_ms=MEMBERSHIP.session_timeout_ms.value(group, broker),
            standby_count=min(
                group[STREAMS_NUM_STANDBY_REPLICAS], broker[GROUP_STREAMS_MAX_STANDBY_REPLICAS]
            ),
            initial_delay_ms=group[STREAMS_INITIAL_REBALANCE_DELAY_MS],
            max_size=broker[GROUP_STREAMS_MAX_SIZE],
            pace=MEMBERSHIP.pace(group, broker),
        )
