"""Settings of consumer groups, with Kafka's names and defaults."""

from typing import Any

from ottla.groups.bounded_keys import broker_keys_of
from ottla.groups.modern.assignment_pace import Pace
from ottla.groups.modern.config import membership_keys
from ottla.protocol.config import ConfigKey, ConfigValues
from ottla.protocol.entities import entity

MEMBERSHIP = membership_keys("consumer")

BOUNDED_KEYS = MEMBERSHIP.bounded
GROUP_KEYS: tuple[ConfigKey[Any], ...] = tuple(key.group_key for key in BOUNDED_KEYS)
BROKER_KEYS: tuple[ConfigKey[Any], ...] = (
    *broker_keys_of(BOUNDED_KEYS),
    MEMBERSHIP.rebalance_heartbeat_interval_ms,
)


@entity
class ConsumerConfig:
    """The effective settings of a consumer group."""

    session_timeout_ms: int = MEMBERSHIP.session_timeout_ms.group_key.default
    pace: Pace = MEMBERSHIP.default_pace

    @classmethod
    def of(cls, group: ConfigValues, broker: ConfigValues) -> "ConsumerConfig":
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return cls(
            session_timeout_ms=MEMBERSHIP.session_timeout_ms.value(group, broker),
            pace=MEMBERSHIP.pace(group, broker),
        )
