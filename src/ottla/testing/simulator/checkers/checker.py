"""What a checker is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.events import Event, ReadRecord

if TYPE_CHECKING:
    from ottla.testing.simulator.simulated_node import SimulatedNode


@dataclass(slots=True)
class FinalState:
    """What is there when faults have ended, everybody is well and clients have stopped."""

    records: Mapping[TopicPartition, Sequence[ReadRecord]]  # As a consumer reads them.


@dataclass(slots=True)
class Checker:
    """Raises Violation; what it does not look at it leaves alone."""

    def on(self, event: Event) -> None:
        """Something that a client did or saw."""

    def look(self, node: "SimulatedNode") -> None:
        """At the inside of a node that serves; often."""

    def check_end(self, final: FinalState) -> None:
        """At the end of the run."""


@dataclass(slots=True)
class History:
    """Passes on what happens."""

    checkers: Sequence[Checker] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        for checker in self.checkers:
            checker.on(event)
