"""Records are in the order in which their producer sent them.

If a non-idempotent producer wrote a record twice, the first one counts.
"""

from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Event, ReadRecord, Sent, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class Order(Checker):
    sent: dict[bytes, Sent] = field(default_factory=dict)

    def on(self, event: Event) -> None:
        if isinstance(event, Sent):
            self.sent[event.value] = event

    def check_end(self, final: FinalState) -> None:
        for partition, records in final.records.items():
            self._check(partition, list(records))

    def _check(self, partition: TopicPartition, records: list[ReadRecord]) -> None:
        last: dict[str, int] = {}
        seen: set[bytes] = set()
        for offset, value in records:
            sent = self.sent.get(value)
            if sent is None or sent.partition != partition:
                raise Violation(
                    f"{partition} has {name_of(value)} at {offset}, which nobody sent there"
                )
            if value not in seen and sent.number < last.get(sent.producer, -1):
                raise Violation(
                    f"{name_of(value)} is in {partition} at {offset}, behind number "
                    f"{last[sent.producer]} of {sent.producer}"
                )
            seen.add(value)
            last[sent.producer] = max(last.get(sent.producer, -1), sent.number)
