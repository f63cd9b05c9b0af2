"""All consumers read the same records at the same offsets, always and without gaps.

So a record that was read is never lost either.
"""

from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Event, Read, ReadRecord, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class SameForAll(Checker):
    values: dict[tuple[TopicPartition, int], bytes] = field(default_factory=dict)
    read: dict[tuple[str, TopicPartition], list[ReadRecord]] = field(default_factory=dict)

    def on(self, event: Event) -> None:
        if not isinstance(event, Read):
            return
        offset, value = event.record
        read = self.read.setdefault((event.reader, event.partition), [])
        if read and read[-1].offset >= offset:
            raise Violation(
                f"{event.reader} reads offset {offset} of {event.partition} after {read[-1].offset}"
            )
        read.append(event.record)
        known = self.values.setdefault((event.partition, offset), value)
        if known != value:
            raise Violation(
                f"{event.reader} reads {name_of(value)} at {offset} of {event.partition}, "
                f"where somebody has read {name_of(known)}"
            )

    def check_end(self, final: FinalState) -> None:
        for (reader, partition), read in self.read.items():
            first, last = read[0].offset, read[-1].offset
            there = [
                record for record in final.records[partition] if first <= record.offset <= last
            ]
            if there != read:
                missed = sorted(set(there) ^ set(read))
                raise Violation(f"{reader} did not read {partition} as it is: {missed[:10]}")
