"""A transaction is visible as a whole or not at all, and its copies are made exactly once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.checker import Checker, FinalState
from ottla.testing.simulator.clients.copier import copied_offset
from ottla.testing.simulator.events import Event, TransactionEnded, name_of
from ottla.testing.simulator.violation import Violation


@dataclass(slots=True)
class Transactions(Checker):
    ended: list[TransactionEnded] = field(default_factory=list)

    def on(self, event: Event) -> None:
        if isinstance(event, TransactionEnded):
            self.ended.append(event)

    def check_end(self, final: FinalState) -> None:
        present = {value for partition in final.copies for value in _values(final, partition)}
        for transaction in self.ended:
            missing = [value for value in transaction.values if value not in present]
            if transaction.committed and missing:
                raise Violation(f"{transaction.name} was committed, and {missing[0]} is lost")
            if transaction.committed is False and len(missing) < len(transaction.values):
                raise Violation(f"{transaction.name} was aborted, but some of it is read")
            if missing and len(missing) < len(transaction.values):
                raise Violation(f"of {transaction.name} a part is there, but not {missing[0]}")
        self._check_copies(final)

    def _check_copies(self, final: FinalState) -> None:
        copies: dict[tuple[str, int], bytes] = {}
        for partition in final.copies:
            for _, value in _values(final, partition):
                source = copied_offset(value)
                if source in copies:
                    raise Violation(
                        f"{source} was copied twice: {name_of(copies[source])} and {name_of(value)}"
                    )
                copies[source] = value
        for source, end_offset in final.copied_to.items():
            for offset, _ in final.records[source]:
                if offset < end_offset and (str(source), offset) not in copies:
                    raise Violation(f"{source} is copied up to {end_offset}, without {offset}")


def _values(final: FinalState, partition: TopicPartition) -> Iterator[tuple[TopicPartition, bytes]]:
    return ((partition, record.value) for record in final.copies[partition])
