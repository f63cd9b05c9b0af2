"""Encodes and decodes records of `__transaction_state`: writes version 1, reads 0 and 1."""

import struct
from collections.abc import Iterable
from typing import TypeVar

from ottla.protocol.errors import ProtocolError
from ottla.protocol.reader import read_lifted
from ottla.protocol.topics import TopicPartition
from ottla.protocol.writer import write_entity
from ottla.transactions.record import (
    PartitionsOfTopic,
    TransactionLogKey,
    TransactionLogValue,
    TransactionLogValueV0,
    TransactionRecord,
    UnknownRecord,
)
from ottla.transactions.state import BY_NUMBER, TransactionState
from ottla.transactions.transaction import Transaction

T = TypeVar("T")

_VERSION = struct.Struct(">h")
_KEY_TYPE = 0
_LAYOUTS: dict[int, type] = {0: TransactionLogValueV0, 1: TransactionLogValue}
_VERSION_WRITTEN = 1


class TransactionRecordCodec:
    """Implements `machine.contract.RecordCodec`."""

    def encode(self, record: object) -> tuple[bytes, bytes | None]:
        assert isinstance(record, TransactionRecord)
        key = _encode(_KEY_TYPE, TransactionLogKey(transactional_id=record.transactional_id))
        if record.transaction is None:
            return key, None
        return key, _encode(_VERSION_WRITTEN, _value_of(record.transaction))

    def decode(self, key: bytes | None, value: bytes | None) -> TransactionRecord | UnknownRecord:
        if key is None:
            raise ValueError("a record of a transaction has a key")
        record_type = _version_of(key)
        if record_type != _KEY_TYPE:
            return UnknownRecord(record_type)
        transactional_id = _decode(TransactionLogKey, TransactionLogKey, key).transactional_id
        if value is None:
            return TransactionRecord(transactional_id, None)
        version = _version_of(value)
        if version not in _LAYOUTS:
            raise ValueError(f"TransactionLogValue version {version} is not known")
        transaction = _transaction_of(_decode(_LAYOUTS[version], TransactionLogValue, value))
        is_dead = transaction.state is TransactionState.DEAD
        return TransactionRecord(transactional_id, None if is_dead else transaction)


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


def _encode(version: int, entity: object) -> bytes:
    out = bytearray(_VERSION.pack(version))
    write_entity(out, entity)
    return bytes(out)


def _version_of(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ValueError("a record of a transaction starts with its version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _decode(layout: type, newest: type[T], data: bytes) -> T:
    try:
        return read_lifted(layout, newest, data, _VERSION.size)[0]
    except ProtocolError as error:
        raise ValueError(str(error)) from None
