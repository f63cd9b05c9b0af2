"""Queue records: never early, never with two workers at once, never after accept, none lost.

With ordering by key: one record of a key at a time, and never after a later one.

Times are by the leaders' clocks, which may differ: a leader delivers nothing before its own clock
says so. If a clock was set meanwhile, nothing is checked: a leader holds a record for as long as it
was asked to, whatever its clock shows.
"""

from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.events import Acknowledged, Delivered, Event, QueueDrained, Settled
from ottla.testing.simulator.violation import Violation

COUNT_SURE = 5  # After more deliveries some may have been lost on the way, and the limit reached.


@dataclass(slots=True)
class _Record:
    count: int = 0  # Of the newest delivery.
    not_before_ms: int = 0  # Of the one after it.
    leader: str = ""  # Of the newest delivery, and how its clock was set then.
    clock_set_ms: float = 0.0
    accepted_at: float | None = None
    may_be_accepted: bool = False


@dataclass(slots=True)
class Queues(Checker):
    records: dict[tuple[TopicPartition, int], _Record] = field(default_factory=dict)
    # Offsets that came of each key.
    lines: dict[tuple[TopicPartition, bytes], set[int]] = field(default_factory=dict)
    drained: bool = False
    # Whose producers heard of them before a consumer found the queue empty.
    due: set[tuple[TopicPartition, int]] = field(default_factory=set)

    def on(self, event: Event) -> None:
        if isinstance(event, Delivered):
            self._on_delivered(event)
        elif isinstance(event, Settled):
            self._on_settled(event)
        elif isinstance(event, QueueDrained):
            self.drained = True
        elif isinstance(event, Acknowledged) and not self.drained:
            self.due.add((event.sent.partition, event.offset))

    def _on_delivered(self, event: Delivered) -> None:
        record = self.records.setdefault((event.partition, event.offset), _Record())
        what = f"{event.partition} offset {event.offset}, delivery {event.delivery_count},"
        if record.accepted_at is not None and event.sent_at >= record.accepted_at:
            raise Violation(f"{what} came at {event.sent_at:.3f}, after it was accepted")
        if event.delivery_count == record.count:
            raise Violation(f"{what} came twice")
        if event.delivery_count < record.count:
            return  # An answer that was overtaken.
        was_set = event.leader == record.leader and event.clock_set_ms != record.clock_set_ms
        is_early = event.clock_ms is not None and event.clock_ms < record.not_before_ms
        if is_early and not was_set:
            raise Violation(f"{what} came before {record.not_before_ms}, at {event.clock_ms}")
        if event.key is not None:
            self._check_order(event, event.key, what)
        record.count = event.delivery_count
        record.not_before_ms = event.hold_until_ms
        record.leader, record.clock_set_ms = event.leader, event.clock_set_ms

    def _check_order(self, event: Delivered, key: bytes, what: str) -> None:
        line = self.lines.setdefault((event.partition, key), set())
        for offset in line:
            if offset > event.offset:
                raise Violation(f"{what} came after offset {offset} of the same key")
            earlier = self.records[event.partition, offset]
            is_done = earlier.may_be_accepted or earlier.count >= COUNT_SURE
            if offset < event.offset and not is_done:
                raise Violation(f"{what} came while {offset} of the same key was not done")
        line.add(event.offset)

    def _on_settled(self, event: Settled) -> None:
        record = self.records[event.partition, event.offset]
        if event.is_accepted:
            record.may_be_accepted = True
            if event.known:
                record.accepted_at = event.at
        elif event.delivery_count == record.count:
            # Not known: it may count, or the hold goes on.
            due_ms = event.due_ms if event.known else min(event.due_ms, record.not_before_ms)
            record.not_before_ms = due_ms

    def check_end(self, final: FinalState) -> None:
        if not self.drained:
            return
        for partition, read in final.records.items():
            for offset, _ in read:
                if (partition, offset) not in self.due:
                    continue
                record = self.records.get((partition, offset), _Record())
                if not record.may_be_accepted and record.count < COUNT_SURE:
                    raise Violation(f"{partition} offset {offset} was lost to the queue: {record}")
