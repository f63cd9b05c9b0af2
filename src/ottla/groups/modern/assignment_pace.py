"""How often a group gets a new target assignment, and how often its members send heartbeats.

A target assignment costs time for every member and partition, so if many members join, a group
would spend its time on assignments for all but the last of them. So the next target follows only
some time after the last (KIP-1263): the larger the group, the later; a small group never waits.

Partitions move only in heartbeats. So for some time after a change members send them more often
than in a quiet group; the more members there are, the less often.
"""

from typing import TYPE_CHECKING, Any

from ottla.protocol.entities import entity

if TYPE_CHECKING:  # Every broker reads these settings; most never load a group.
    from ottla.groups.modern.group import ModernGroup


@entity
class Pace:
    assignment_interval_ms: int  # The longest wait for the next target.
    # The size of a group is the number of its members plus the partitions in its last target.
    assignment_us_each: int = 100
    assignment_waits_above: int = 100
    heartbeat_interval_ms: int
    rebalance_heartbeat_interval_ms: int
    rebalance_heartbeat_ms_per_member: int = 5

    def is_target_due(self, group: "ModernGroup[Any, Any]", now_ms: int) -> bool:
        """A clock that was set back must not stall the group."""
        if group.epoch == group.assignment_epoch:
            return False
        size = len(group.members) + group.target_size
        if size <= self.assignment_waits_above or not group.assignment_timestamp_ms:
            return True
        patience_ms = min(size * self.assignment_us_each // 1000, self.assignment_interval_ms)
        return not 0 <= now_ms - group.assignment_timestamp_ms < patience_ms

    def next_heartbeat_ms(self, group: "ModernGroup[Any, Any]", now_ms: int) -> int:
        quiet_ms = now_ms - group.assignment_timestamp_ms
        is_quiet = not 0 <= quiet_ms < 2 * self.heartbeat_interval_ms
        if is_quiet and group.epoch == group.assignment_epoch:
            return self.heartbeat_interval_ms
        crowd_ms = len(group.members) * self.rebalance_heartbeat_ms_per_member
        eager_ms = max(self.rebalance_heartbeat_interval_ms, crowd_ms)
        return min(eager_ms, self.heartbeat_interval_ms)
