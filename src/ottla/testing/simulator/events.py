"""What clients do and see; checkers hear of it as it happens."""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.protocol.topics import TopicPartition


class ReadRecord(NamedTuple):
    offset: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """A producer sends a record for the first time; its value is like no other."""

    producer: str
    partition: TopicPartition
    number: int  # Rises by one with each record of the producer to the partition.
    value: bytes
    idempotent: bool


@dataclass(frozen=True, slots=True)
class Acknowledged:
    sent: Sent
    offset: int  # -1 if the broker only says that it is there.


@dataclass(frozen=True, slots=True)
class Read:
    """A consumer sees a record, in the order of offsets from where it began."""

    reader: str
    partition: TopicPartition
    record: ReadRecord


Event = Sent | Acknowledged | Read
