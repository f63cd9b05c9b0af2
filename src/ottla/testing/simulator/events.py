"""What clients do and see; checkers are notified as it happens."""

from dataclasses import dataclass
from typing import NamedTuple

from ottla.protocol.topics import TopicPartition


def name_of(value: bytes) -> str:
    """A value without what it was filled up with."""
    return value.rstrip(b".").decode()


class ReadRecord(NamedTuple):
    offset: int
    value: bytes


class Event:
    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sent(Event):
    """A producer sends a record for the first time; its value is like no other."""

    producer: str
    partition: TopicPartition
    number: int  # Rises by one with each record of the producer to the partition.
    value: bytes
    idempotent: bool


@dataclass(frozen=True, slots=True)
class Acknowledged(Event):
    sent: Sent
    offset: int  # -1 if the broker only says that it is there.


@dataclass(frozen=True, slots=True)
class Read(Event):
    """A consumer sees a record, in the order of offsets from where it began."""

    reader: str
    partition: TopicPartition
    record: ReadRecord


@dataclass(frozen=True, slots=True)
class Owned(Event):
    """A member of a group was given a partition."""

    group: str
    member: str
    partition: TopicPartition
    at: float


@dataclass(frozen=True, slots=True)
class Confirmed(Event):
    """The coordinator has accepted a request in which the member has the partition."""

    group: str
    member: str
    partition: TopicPartition
    sent_at: float


@dataclass(frozen=True, slots=True)
class OffsetCommitted(Event):
    group: str
    partition: TopicPartition
    offset: int
    at: float
    known: bool  # False if there was no answer: it may come to be at any time.


@dataclass(frozen=True, slots=True)
class OffsetFetched(Event):
    """A member begins where the group has stopped."""

    group: str
    partition: TopicPartition
    offset: int
    asked_at: float


@dataclass(frozen=True, slots=True)
class Processed(Event):
    """A member of a group has read a record, in order from where it began."""

    group: str
    partition: TopicPartition
    record: ReadRecord


@dataclass(frozen=True, slots=True)
class TransactionEnded(Event):
    name: str
    values: tuple[tuple[TopicPartition, bytes], ...]
    committed: bool | None  # None if that is not known.


@dataclass(frozen=True, slots=True)
class Delivered(Event):
    """A consumer of a queue got a record, and holds it."""

    partition: TopicPartition
    offset: int
    delivery_count: int
    sent_at: float
    hold_until_ms: int  # At least, by the leader's clock.
    clock_ms: int | None  # What that clock shows now; None if it was set since the consumer asked.
    leader: str = ""
    clock_set_ms: float = 0.0  # How far the leader's clock was set since it started.
    key: bytes | None = None  # If the group gets the records of a key in order.


@dataclass(frozen=True, slots=True)
class Settled(Event):
    """A consumer accepts a record, or releases it until a time."""

    partition: TopicPartition
    offset: int
    delivery_count: int
    is_accepted: bool
    due_ms: int  # By the leader's clock.
    at: float
    known: bool  # False if there was no answer.


@dataclass(frozen=True, slots=True)
class QueueDrained(Event):
    """A consumer has stopped since nothing came for long."""

    group: str
