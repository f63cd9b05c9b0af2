"""Encodes and decodes records of `__transaction_state`: writes version 1, reads 0 and 1."""

from collections.abc import Iterable

from ottla.machine.record import Record, UnknownRecord
from ottla.machine.record_codec import FamilyCodec
from ottla.protocol.topics import TopicPartition
from ottla.transactions.record import (
    PartitionsOfTopic,
    TransactionLogKey,
    TransactionLogValue,
    TransactionRecord,
)
from ottla.transactions.state import BY_NUMBER, TransactionState
from ottla.transactions.transaction import Transaction

_CODEC = FamilyCodec({TransactionLogKey.RECORD_TYPE: (TransactionLogKey, TransactionLogValue)})


class TransactionRecordCodec:
    """Implements `machine.contract.RecordCodec`."""

    def encode(self, record: object) -> tuple[bytes, bytes | None]:
        assert isinstance(record, TransactionRecord)
        value = None if record.transaction is None else _value_of(record.transaction)
        key = TransactionLogKey(transactional_id=record.transactional_id)
        return _CODEC.encode(Record(key, value))

    def decode(self, key: bytes | None, value: bytes | None) -> TransactionRecord | UnknownRecord:
        record = _CODEC.decode(key, value)
        if isinstance(record, UnknownRecord):
            return record
        assert isinstance(record.key, TransactionLogKey)
        assert isinstance(record.value, TransactionLogValue | None)
        transaction = None if record.value is None else _transaction_of(record.value)
        if transaction is not None and transaction.state is TransactionState.DEAD:
            transaction = None
        return TransactionRecord(record.key.transactional_id, transaction)


def _value_of(transaction: Transaction) -> TransactionLogValue:
    is_empty = transaction.state is TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state.number,
        transaction_partitions=None if is_empty else _by_topic(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.updated_ms,
        transaction_start_timestamp_ms=transaction.started_ms,
        client_transaction_version=transaction.client_version,
        next_producer_epoch=transaction.next_producer_epoch,
    )


def _transaction_of(value: TransactionLogValue) -> Transaction:
    state = BY_NUMBER.get(value.transaction_status)
    if state is None:
        raise ValueError(f"{value.transaction_status} is not the state of a transaction")
    return Transaction(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        next_producer_epoch=value.next_producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        updated_ms=value.transaction_last_update_timestamp_ms,
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> tuple[PartitionsOfTopic, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return tuple(
        PartitionsOfTopic(topic=topic, partition_ids=tuple(ids)) for topic, ids in topics.items()
    )
