"""What a log remembers about one producer."""

from dataclasses import field
from typing import NamedTuple

from ottla.protocol.lazy_dataclass import dataclass
from ottla.records.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX

BATCHES_MAX = 5  # Kafka's bound: a client has at most this many requests in flight.
NO_OFFSET = -1
NO_COORDINATOR_EPOCH = -1


class AppendedBatch(NamedTuple):
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


@dataclass(slots=True)
class ProducerEntry:
    producer_id: int
    producer_epoch: int = NO_PRODUCER_EPOCH
    next_sequence: int = 0
    # The last five of this epoch, oldest first.
    batches: list[AppendedBatch] = field(default_factory=list)
    last_timestamp: int = NO_TIMESTAMP
    coordinator_epoch: int = NO_COORDINATOR_EPOCH
    transaction_first_offset: int = NO_OFFSET

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
