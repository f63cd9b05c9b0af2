"""The interface of a checker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.events import Event, ReadRecord
from ottla.testing.simulator.log_view import LogView

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode


@dataclass(slots=True)
class FinalState:
    """The state after faults have ended, the cluster has recovered and clients have stopped."""

    # What consumers read of topics that producers write to.
    records: dict[TopicPartition, list[ReadRecord]] = field(default_factory=dict)
    # What transactions have committed.
    copies: dict[TopicPartition, list[ReadRecord]] = field(default_factory=dict)
    # The offsets that copiers have committed.
    copied_to: dict[TopicPartition, int] = field(default_factory=dict)
    nodes: Sequence["SimulatedNode"] = ()


@dataclass(slots=True)
class Checker:
    """Raises Violation. Override the methods that the checker needs."""

    def on(self, event: Event) -> None:
        """A client did or saw something."""

    def look(self, node: "SimulatedNode", logs: Sequence[LogView]) -> None:
        """Inspect a serving node and its logs; called often."""

    def check_end(self, final: FinalState) -> None:
        """Called at the end of the run."""


@dataclass(slots=True)
class History:
    """Passes events on to the checkers, and counts them."""

    checkers: Sequence[Checker] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def tell(self, event: Event) -> None:
        self.counts[type(event).__name__] += 1
        for checker in self.checkers:
            checker.on(event)
