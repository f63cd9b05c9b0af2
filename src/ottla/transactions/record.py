"""The record of `__transaction_state`: the whole state of a transactional id, or its removal.

The layouts are Kafka's TransactionLogKey and TransactionLogValue.
"""

from dataclasses import field
from typing import ClassVar

from ottla.protocol.entities import entity
from ottla.protocol.lazy_dataclass import dataclass
from ottla.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    transactional_id: str
    transaction: Transaction | None  # None: the transactional id is forgotten.


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of a type unknown to this version; replay skips it."""

    record_type: int


class _V0:
    __slots__ = ()
    __version__: ClassVar[int] = 0
    __flexible__: ClassVar[bool] = False


class _V1:
    __slots__ = ()
    __version__: ClassVar[int] = 1
    __flexible__: ClassVar[bool] = True


@entity
class TransactionLogKey(_V0):
    transactional_id: str = field(metadata={"kafka_type": "string"})


@entity
class PartitionsOfTopicV0(_V0):
    topic: str = field(metadata={"kafka_type": "string"})
    partition_ids: tuple[int, ...] = field(metadata={"kafka_type": "int32"})


@entity
class TransactionLogValueV0(_V0):
    producer_id: int = field(metadata={"kafka_type": "int64"})
    producer_epoch: int = field(metadata={"kafka_type": "int16"})
    transaction_timeout_ms: int = field(metadata={"kafka_type": "int32"})
    transaction_status: int = field(metadata={"kafka_type": "int8"})
    transaction_partitions: tuple[PartitionsOfTopicV0, ...] | None
    transaction_last_update_timestamp_ms: int = field(metadata={"kafka_type": "int64"})
    transaction_start_timestamp_ms: int = field(metadata={"kafka_type": "int64"})


@entity
class PartitionsOfTopic(_V1):
    topic: str = field(metadata={"kafka_type": "string"})
    partition_ids: tuple[int, ...] = field(metadata={"kafka_type": "int32"})


@entity
class TransactionLogValue(_V1):
    producer_id: int = field(metadata={"kafka_type": "int64"})
    previous_producer_id: int = field(metadata={"kafka_type": "int64", "tag": 0}, default=-1)
    next_producer_id: int = field(metadata={"kafka_type": "int64", "tag": 1}, default=-1)
    producer_epoch: int = field(metadata={"kafka_type": "int16"})
    transaction_timeout_ms: int = field(metadata={"kafka_type": "int32"})
    transaction_status: int = field(metadata={"kafka_type": "int8"})
    transaction_partitions: tuple[PartitionsOfTopic, ...] | None
    transaction_last_update_timestamp_ms: int = field(metadata={"kafka_type": "int64"})
    transaction_start_timestamp_ms: int = field(metadata={"kafka_type": "int64"})
    client_transaction_version: int = field(metadata={"kafka_type": "int16", "tag": 2}, default=0)
    next_producer_epoch: int = field(metadata={"kafka_type": "int16", "tag": 3}, default=-1)
