"""The settings that each type of assigned group has, with Kafka's names and defaults."""

from typing import NamedTuple

from ottla.groups.bounded_keys import BoundedKey, Limit, bounded_key
from ottla.groups.modern.assignment_pace import Pace
from ottla.protocol.config import ConfigKey, ConfigValues, at_least, int_key


class MembershipKeys(NamedTuple):
    """For one type of group."""

    session_timeout_ms: BoundedKey
    heartbeat_interval_ms: BoundedKey
    assignment_interval_ms: BoundedKey
    rebalance_heartbeat_interval_ms: ConfigKey[int]

    @property
    def bounded(self) -> tuple[BoundedKey, ...]:
        return self.session_timeout_ms, self.heartbeat_interval_ms, self.assignment_interval_ms

    def pace(self, group: ConfigValues, broker: ConfigValues) -> Pace:
        """`group` has the values of group keys, falling back to the broker's synonyms."""
        return Pace(
            assignment_interval_ms=self.assignment_interval_ms.value(group, broker),
            heartbeat_interval_ms=self.heartbeat_interval_ms.value(group, broker),
            rebalance_heartbeat_interval_ms=broker[self.rebalance_heartbeat_interval_ms],
        )

    @property
    def default_pace(self) -> Pace:
        return self.pace(ConfigValues(), ConfigValues())


def membership_keys(kind: str, assigned: str = "partition") -> MembershipKeys:
    """`kind` is the type of group, and `assigned` what its members get."""
    return MembershipKeys(
        bounded_key(
            f"{kind}.session.timeout.ms",
            Limit(45_000, least=1),
            f"A member of a {kind} group that sends no heartbeat for this long is removed.",
            low=Limit(45_000, least=1),
            high=Limit(60_000, least=1),
        ),
        bounded_key(
            f"{kind}.heartbeat.interval.ms",
            Limit(5_000, least=1),
            f"How often members of a {kind} group send a heartbeat.",
            low=Limit(5_000, least=1),
            high=Limit(15_000, least=1),
        ),
        bounded_key(
            f"{kind}.assignment.interval.ms",
            Limit(1_000, least=0),
            f"The longest interval between two assignments of a {kind} group. The actual one is"
            f" 0.1 ms per member and {assigned}, and zero for fewer than 100 of them.",
            low=Limit(0, least=0),
            high=Limit(15_000, least=0),
            dynamic=True,
        ),
        int_key(
            f"group.{kind}.rebalance.heartbeat.interval.ms",
            200,
            f"How often members of a {kind} group send a heartbeat for some time after a change, so"
            f" that {assigned}s change hands quickly. Longer in groups of more than 40 members, but"
            " never longer than the heartbeat interval.",
            validator=at_least(1),
        ),
    )
