"""What clients did and saw during the faults: recorded as it happens, checked later.

A record is identified by its writer and a number that the writer counts up in each partition, so
that every copy of it is recognised wherever it appears.
"""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple


class Partition(NamedTuple):
    topic: str
    partition: int


class Written(NamedTuple):
    """One record, as decoded from its value."""

    writer: str
    number: int  # Counted by the writer in this partition.

    def encode(self) -> bytes:
        return f"{self.writer} {self.number}".encode()

    @classmethod
    def decode(cls, value: bytes) -> "Written":
        writer, number = value.decode().split()
        return cls(writer, int(number))


class Copied(NamedTuple):
    """One record that a transaction wrote: a copy of another."""

    writer: str
    transaction: int
    source: Partition
    offset: int  # In the source.

    def encode(self) -> bytes:
        source = f"{self.source.topic}/{self.source.partition}"
        return f"{self.writer} {self.transaction} {source} {self.offset}".encode()

    @classmethod
    def decode(cls, value: bytes) -> "Copied":
        writer, transaction, source, offset = value.decode().split()
        topic, _, partition = source.rpartition("/")
        return cls(writer, int(transaction), Partition(topic, int(partition)), int(offset))


class Transaction(NamedTuple):
    writer: str
    number: int
    size: int  # Records.
    committed: bool | None  # None: the client does not know.


@dataclass
class History:
    """Threads add to it; check it once they have ended."""

    # Offsets, or None: an idempotent producer may learn that a record is there, but not where.
    acked: dict[Partition, dict[Written, int | None]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    idempotent: set[str] = field(default_factory=set)  # Writers.
    consumed: dict[Partition, dict[int, bytes]] = field(default_factory=lambda: defaultdict(dict))
    transactions: list[Transaction] = field(default_factory=list)
    assignments: Counter[str] = field(default_factory=Counter)  # By group, one per member.
    problems: list[str] = field(default_factory=list)  # Violations seen by a client.
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def acked_count(self) -> int:
        return sum(map(len, self.acked.values()))

    @property
    def consumed_count(self) -> int:
        return sum(map(len, self.consumed.values()))

    def on_acked(self, topic_partition: Partition, written: Written, offset: int | None) -> None:
        with self._lock:
            self.acked[topic_partition][written] = offset

    def on_consumed(self, topic_partition: Partition, records: Iterable[tuple[int, bytes]]) -> None:
        """A record must be the same each time it is read."""
        with self._lock:
            known = self.consumed[topic_partition]
            for offset, value in records:
                if known.setdefault(offset, value) != value:
                    self.problems.append(
                        f"{topic_partition} offset {offset} was {known[offset]!r} and is {value!r}"
                    )

    def on_transaction(self, transaction: Transaction) -> None:
        with self._lock:
            self.transactions.append(transaction)

    def on_assignment(self, group: str) -> None:
        with self._lock:
            self.assignments[group] += 1

    def on_problem(self, text: str) -> None:
        with self._lock:
            self.problems.append(text)

    def save(self, path: Path) -> None:
        """Writes it to a file, to investigate a failure."""
        with path.open("w") as file:
            for topic_partition, acked in self.acked.items():
                for written, offset in acked.items():
                    file.write(json.dumps(["acked", *topic_partition, offset, *written]) + "\n")
            for transaction in self.transactions:
                file.write(json.dumps(["transaction", *transaction]) + "\n")
            for text in self.problems:
                file.write(json.dumps(["problem", text]) + "\n")
