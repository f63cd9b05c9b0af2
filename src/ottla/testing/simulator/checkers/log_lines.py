"""A node does not flood its log, however often something fails: repeated events are summarised."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ottla.testing.simulator.checkers.checker import Checker
from ottla.testing.simulator.log_view import LogView
from ottla.testing.simulator.violation import Violation

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode

INTERVAL_S: Final = 30.0
LINES_MAX: Final = 300  # In an interval; a start and a few elections are some dozens.


@dataclass(slots=True)
class LogLines(Checker):
    # By node: when the interval began, and how many lines there were.
    begun: dict[int, tuple[float, int]] = field(default_factory=dict)

    def look(self, node: "SimulatedNode", _: Sequence[LogView]) -> None:
        now, count = node.host.scheduler.now, node.host.log_lines_count
        since, before = self.begun.setdefault(node.node_id, (now, count))
        if count - before > LINES_MAX:
            raise Violation(f"{node} has logged {count - before} lines in {now - since:.0f} s")
        if now - since >= INTERVAL_S:
            self.begun[node.node_id] = (now, count)
