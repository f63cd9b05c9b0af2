"""Settings of streams groups, with Kafka's names and defaults."""

from typing import Any

from ottla.groups.bounded_keys import INT_MAX, Limit, bounded_key, broker_keys_of
from ottla.groups.modern.assignment_pace import Pace
from ottla.protocol.config import ConfigKey, ConfigValues, at_least, between, int_key
from ottla.protocol.entities import entity

STREAMS_SESSION_TIMEOUT_MS = bounded_key(
    "streams.session.timeout.ms",
    Limit(45_000, least=1),
    "A member of a streams group that sends no heartbeat for this long is removed.",
    low=Limit(45_000, least=1),
    high=Limit(60_000, least=1),
)
STREAMS_HEARTBEAT_INTERVAL_MS = bounded_key(
    "streams.heartbeat.interval.ms",
    Limit(5_000, least=1),
    "How often members of a streams group send a heartbeat.",
    low=Limit(5_000, least=1),
    high=Limit(15_000, least=1),
)
STREAMS_ASSIGNMENT_INTERVAL_MS = bounded_key(
    "streams.assignment.interval.ms",
    Limit(1_000, least=0),
    "The longest time between two assignments of a streams group. The actual time is 0.1 ms for "
    "each member and task, and none below 100 of them.",
    low=Limit(0, least=0),
    high=Limit(15_000, least=0),
    dynamic=True,
)
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
GROUP_STREAMS_NUM_STANDBY_REPLICAS = int_key(
    "group.streams.num.standby.replicas",
    0,
    STREAMS_NUM_STANDBY_REPLICAS.doc,
    validator=at_least(0),
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = int_key(
    "group.streams.max.standby.replicas",
    2,
    "The most that streams.num.standby.replicas counts for.",
    validator=at_least(0),
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS = int_key(
    "group.streams.initial.rebalance.delay.ms",
    3_000,
    STREAMS_INITIAL_REBALANCE_DELAY_MS.doc,
    validator=at_least(0),
)
GROUP_STREAMS_MAX_SIZE = int_key(
    "group.streams.max.size",
    INT_MAX,
    "Maximum number of members of a streams group.",
    validator=between(1, INT_MAX),
)
GROUP_STREAMS_REBALANCE_HEARTBEAT_INTERVAL_MS = int_key(
    "group.streams.rebalance.heartbeat.interval.ms",
    200,
    "How often members of a streams group send a heartbeat for some time after a change, so that "
    "tasks change hands quickly.",
    validator=at_least(1),
)

BOUNDED_KEYS = (
    STREAMS_SESSION_TIMEOUT_MS,
    STREAMS_HEARTBEAT_INTERVAL_MS,
    STREAMS_ASSIGNMENT_INTERVAL_MS,
)
GROUP_KEYS: tuple[ConfigKey[Any], ...] = (
    *(key.group_key for key in BOUNDED_KEYS),
    STREAMS_NUM_STANDBY_REPLICAS,
    STREAMS_INITIAL_REBALANCE_DELAY_MS,
)
BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *broker_keys_of(BOUNDED_KEYS),
    GROUP_STREAMS_NUM_STANDBY_REPLICAS,
    GROUP_STREAMS_MAX_STANDBY_REPLICAS,
    GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS,
    GROUP_STREAMS_MAX_SIZE,
    GROUP_STREAMS_REBALANCE_HEARTBEAT_INTERVAL_MS,
)


def _pace(group: ConfigValues, broker: ConfigValues) -> Pace:
    return Pace(
        assignment_interval_ms=STREAMS_ASSIGNMENT_INTERVAL_MS.value(group, broker),
        heartbeat_interval_ms=STREAMS_HEARTBEAT_INTERVAL_MS.value(group, broker),
        rebalance_heartbeat_interval_ms=broker[GROUP_STREAMS_REBALANCE_HEARTBEAT_INTERVAL_MS],
    )


DEFAULT_PACE = _pace(ConfigValues(), ConfigValues())


@entity
class StreamsConfig:
    """The effective settings of a streams group."""

    session_timeout_ms: int = STREAMS_SESSION_TIMEOUT_MS.group_key.default
    standby_count: int = STREAMS_NUM_STANDBY_REPLICAS.default
    initial_delay_ms: int = STREAMS_INITIAL_REBALANCE_DELAY_MS.default
    max_size: int = GROUP_STREAMS_MAX_SIZE.default
    pace: Pace = DEFAULT_PACE

    @classmethod
    def of(cls, group: ConfigValues, broker: ConfigValues) -> "StreamsConfig":
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return cls(
            session_timeout_ms=STREAMS_SESSION_TIMEOUT_MS.value(group, broker),
            standby_count=min(
                group[STREAMS_NUM_STANDBY_REPLICAS], broker[GROUP_STREAMS_MAX_STANDBY_REPLICAS]
            ),
            initial_delay_ms=group[STREAMS_INITIAL_REBALANCE_DELAY_MS],
            max_size=broker[GROUP_STREAMS_MAX_SIZE],
            pace=_pace(group, broker),
        )
