"""What a log remembers about one producer."""

from typing import NamedTuple

from ottla.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX
from ottla.storage.producer_snapshot import SavedBatch, SnapshotEntry

BATCHES_MAX = 5  # Kafka's bound: a client has at most this many requests in flight.
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class AppendedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerEntry:
    __slots__ = (
        "batches",
        "coordinator_epoch",
        "last_timestamp",
        "next_sequence",
        "producer_epoch",
        "producer_id",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.next_sequence = 0
        self.batches: list[AppendedBatch] = []  # The last five of this epoch, oldest first.
        self.last_timestamp = NO_TIMESTAMP
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.transaction_first_offset = NO_OFFSET

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def begin_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches = []
            self.next_sequence = 0

    def add_batch(self, batch: AppendedBatch) -> None:
        batches = self.batches
        if len(batches) == BATCHES_MAX:
            del batches[0]
        batches.append(batch)
        self.next_sequence = (batch.last_sequence + 1) & SEQUENCE_MAX
        self.last_timestamp = batch.timestamp

    def find_duplicate(self, first_sequence: int, last_sequence: int) -> AppendedBatch | None:
        for batch in self.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def to_snapshot(self) -> SnapshotEntry:
        last = self.batches[-1] if self.batches else None
        return SnapshotEntry(
            self.producer_id,
            self.producer_epoch,
            last.last_sequence if last else NO_SEQUENCE,
            last.last_offset if last else NO_OFFSET,
            last.last_offset - last.first_offset if last else 0,
            self.last_timestamp,
            self.coordinator_epoch,
            self.transaction_first_offset,
            tuple(SavedBatch(*batch) for batch in self.batches[:-1]),
        )

    @classmethod
    def of_snapshot(cls, saved: SnapshotEntry) -> "ProducerEntry":
        entry = cls(saved.producer_id)
        entry.producer_epoch = saved.producer_epoch
        if saved.last_offset >= 0:
            first_sequence = saved.last_sequence
            if saved.last_sequence != NO_SEQUENCE:
                first_sequence = (saved.last_sequence - saved.offset_delta) & SEQUENCE_MAX
            first_offset = saved.last_offset - saved.offset_delta
            for batch in saved.earlier:
                entry.add_batch(AppendedBatch(*batch))
            entry.add_batch(
                AppendedBatch(
                    first_sequence,
                    saved.last_sequence,
                    first_offset,
                    saved.last_offset,
                    saved.timestamp,
                )
            )
        entry.last_timestamp = saved.timestamp
        entry.coordinator_epoch = saved.coordinator_epoch
        entry.transaction_first_offset = saved.transaction_first_offset
        return entry
