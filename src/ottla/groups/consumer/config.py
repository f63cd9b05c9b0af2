"""Settings of consumer groups, with Kafka's names and defaults."""

from typing import Any

from ottla.groups.bounded_keys import Limit, bounded_key, broker_keys_of
from ottla.groups.modern.assignment_pace import Pace
from ottla.protocol.config import ConfigKey, ConfigValues, at_least, int_key
from ottla.protocol.entities import entity

CONSUMER_SESSION_TIMEOUT_MS = bounded_key(
    "consumer.session.timeout.ms",
    Limit(45_000, least=1),
    "A member of a consumer group that sends no heartbeat for this long is removed.",
    low=Limit(45_000, least=1),
    high=Limit(60_000, least=1),
)
CONSUMER_HEARTBEAT_INTERVAL_MS = bounded_key(
    "consumer.heartbeat.interval.ms",
    Limit(5_000, least=1),
    "How often members of a consumer group send a heartbeat.",
    low=Limit(5_000, least=1),
    high=Limit(15_000, least=1),
)
CONSUMER_ASSIGNMENT_INTERVAL_MS = bounded_key(
    "consumer.assignment.interval.ms",
    Limit(1_000, least=0),
    "The longest time between two assignments of a consumer group. The actual time is 0.1 ms for "
    "each member and partition, and none below 100 of them.",
    low=Limit(0, least=0),
    high=Limit(15_000, least=0),
    dynamic=True,
)
GROUP_CONSUMER_REBALANCE_HEARTBEAT_INTERVAL_MS = int_key(
    "group.consumer.rebalance.heartbeat.interval.ms",
    200,
    "How often members of a consumer group send a heartbeat for some time after a change, so that"
    " partitions change hands quickly. Longer in groups of more than 40 members, but never longer"
    " than the heartbeat interval.",
    validator=at_least(1),
)

BOUNDED_KEYS = (
    CONSUMER_SESSION_TIMEOUT_MS,
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_ASSIGNMENT_INTERVAL_MS,
)
GROUP_KEYS: tuple[ConfigKey[Any], ...] = tuple(key.group_key for key in BOUNDED_KEYS)
BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *broker_keys_of(BOUNDED_KEYS),
    GROUP_CONSUMER_REBALANCE_HEARTBEAT_INTERVAL_MS,
)


def _pace(group: ConfigValues, broker: ConfigValues) -> Pace:
    return Pace(
        assignment_interval_ms=CONSUMER_ASSIGNMENT_INTERVAL_MS.value(group, broker),
        heartbeat_interval_ms=CONSUMER_HEARTBEAT_INTERVAL_MS.value(group, broker),
        rebalance_heartbeat_interval_ms=broker[GROUP_CONSUMER_REBALANCE_HEARTBEAT_INTERVAL_MS],
    )


DEFAULT_PACE = _pace(ConfigValues(), ConfigValues())


@entity
class ConsumerConfig:
    """The effective settings of a consumer group."""

    session_timeout_ms: int = CONSUMER_SESSION_TIMEOUT_MS.group_key.default
    pace: Pace = DEFAULT_PACE

    @classmethod
    def of(cls, group: ConfigValues, broker: ConfigValues) -> "ConsumerConfig":
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return cls(
            session_timeout_ms=CONSUMER_SESSION_TIMEOUT_MS.value(group, broker),
            pace=_pace(group, broker),
        )
