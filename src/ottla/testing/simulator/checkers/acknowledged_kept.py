"""An acknowledged record is there, at the offset that the broker reported."""

from dataclasses import dataclass, field

from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Acknowledged, Event, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class AcknowledgedKept(Checker):
    acknowledged: list[Acknowledged] = field(default_factory=list)

    def on(self, event: Event) -> None:
        if isinstance(event, Acknowledged):
            self.acknowledged.append(event)

    def check_end(self, final: FinalState) -> None:
        values = {
            partition: {record.offset: record.value for record in records}
            for partition, records in final.records.items()
        }
        present = {partition: set(found.values()) for partition, found in values.items()}
        for event in self.acknowledged:
            sent, offset = event.sent, event.offset
            claim = f"{name_of(sent.value)} was acknowledged at offset {offset} of {sent.partition}"
            if sent.value not in present[sent.partition]:
                raise Violation(f"{claim}, and lost")
            found = values[sent.partition].get(offset, b"nothing")
            if offset >= 0 and found != sent.value:
                raise Violation(f"{claim}, where {name_of(found)} is now")
