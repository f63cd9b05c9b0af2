"""The record of `__transaction_state`: the whole state of a transactional id, or its removal.

The layouts are Kafka's TransactionLogKey and TransactionLogValue.
"""

from dataclasses import field
from typing import ClassVar

from ottla.machine.record import KeyLayout
from ottla.protocol.entities import entity, wire
from ottla.protocol.lazy_dataclass import dataclass
from ottla.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    transactional_id: str
    transaction: Transaction | None  # None: the transactional id is forgotten.


@entity
class TransactionLogKey(KeyLayout):
    RECORD_TYPE: ClassVar[int] = 0
    transactional_id: str = field(metadata=wire("string"))


@entity
class PartitionsOfTopic:
    FLEXIBLE_SINCE: ClassVar[int] = 1
    topic: str = field(metadata=wire("string"))
    partition_ids: tuple[int, ...] = field(metadata=wire("int32"))


@entity
class TransactionLogValue:
    version_written: ClassVar[int] = 1
    VERSIONS_READ: ClassVar[range] = range(2)
    FLEXIBLE_SINCE: ClassVar[int] = 1
    producer_id: int = field(metadata=wire("int64"))
    previous_producer_id: int = field(metadata=wire("int64", tag=0), default=-1)
    next_producer_id: int = field(metadata=wire("int64", tag=1), default=-1)
    producer_epoch: int = field(metadata=wire("int16"))
    transaction_timeout_ms: int = field(metadata=wire("int32"))
    transaction_status: int = field(metadata=wire("int8"))
    transaction_partitions: tuple[PartitionsOfTopic, ...] | None
    transaction_last_update_timestamp_ms: int = field(metadata=wire("int64"))
    transaction_start_timestamp_ms: int = field(metadata=wire("int64"))
    client_transaction_version: int = field(metadata=wire("int16", tag=2), default=0)
    next_producer_epoch: int = field(metadata=wire("int16", tag=3), default=-1)
