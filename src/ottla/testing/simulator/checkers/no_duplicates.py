"""An idempotent producer's record is there once, however often it was sent."""

from dataclasses import dataclass, field

from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Event, Sent, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class NoDuplicates(Checker):
    idempotent: set[bytes] = field(default_factory=set)

    def on(self, event: Event) -> None:
        if isinstance(event, Sent) and event.idempotent:
            self.idempotent.add(event.value)

    def check_end(self, final: FinalState) -> None:
        for partition, records in final.records.items():
            seen: dict[bytes, int] = {}
            for offset, value in records:
                if value in seen and value in self.idempotent:
                    raise Violation(
                        f"{name_of(value)} is in {partition} at {seen[value]} and {offset}"
                    )
                seen[value] = offset
