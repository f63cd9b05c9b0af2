"""A replica's high watermark never falls while it runs, and never passes the end of its log.

If its log is damaged, it falls back to the damage, and fetches what follows again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.log_view import LogView
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode


@dataclass(slots=True)
class HighWatermark(Checker):
    seen: dict[object, int] = field(default_factory=dict)  # By replica.

    def look(self, node: "SimulatedNode", logs: Sequence[LogView]) -> None:
        for log in logs:
            before = self.seen.get(log.replica, 0)
            if log.high_watermark < before and not node.had_damage(log.partition):
                raise Violation(
                    f"the high watermark of {log.partition} on {node} fell from {before} "
                    f"to {log.high_watermark}"
                )
            if log.high_watermark > log.end_offset:
                raise Violation(
                    f"the high watermark of {log.partition} on {node}, {log.high_watermark}, "
                    f"is past the end of its log, {log.end_offset}"
                )
            self.seen[log.replica] = log.high_watermark
