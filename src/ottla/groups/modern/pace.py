"""How often a group gets a new target assignment, and its members are to send heartbeats.

A target assignment costs time for every member, so that a group of many that all join would spend
its time on assignments for all but the last of them. It gets the next one only some time after the
last (KIP-1263): the more members, the later, so that a small group never waits.

Partitions change hands in heartbeats only. For some time after a change members are therefore told
to send them more often than in a quiet group; the more members, the less so.
"""

from dataclasses import dataclass
from typing import Any

from ottla.groups.modern.group import ModernGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    assignment_interval_ms: int  # The longest that a group waits for its next target.
    assignment_us_per_member: int = 100
    heartbeat_interval_ms: int
    rebalance_heartbeat_interval_ms: int
    rebalance_heartbeat_ms_per_member: int = 5

    def is_target_due(self, group: ModernGroup[Any], now_ms: int) -> bool:
        """A clock that was set back must not stop the group."""
        if group.epoch == group.assignment_epoch:
            return False
        patience_ms = len(group.members) * self.assignment_us_per_member // 1000
        waited_ms = now_ms - group.assignment_timestamp_ms
        waits = 0 <= waited_ms < min(patience_ms, self.assignment_interval_ms)
        return not waits or group.assignment_epoch == 0

    def next_heartbeat_ms(self, group: ModernGroup[Any], now_ms: int) -> int:
        quiet_ms = now_ms - group.assignment_timestamp_ms
        is_quiet = not 0 <= quiet_ms < 2 * self.heartbeat_interval_ms
        if is_quiet and group.epoch == group.assignment_epoch:
            return self.heartbeat_interval_ms
        crowd_ms = len(group.members) * self.rebalance_heartbeat_ms_per_member
        eager_ms = max(self.rebalance_heartbeat_interval_ms, crowd_ms)
        return min(eager_ms, self.heartbeat_interval_ms)
