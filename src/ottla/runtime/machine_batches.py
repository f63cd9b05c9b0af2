"""Converts a machine's records to batches of its log, and back.

An operation's records are one batch: plain records, records of one producer's transaction, or the
marker that ends such a transaction (see `machine.transactional`).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ottla.machine.contract import Machine, RecordCodec
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.records.batch import (
    CONTROL_FLAG,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTIONAL_FLAG,
    iterate_headers,
)
from ottla.records.builder import Record
from ottla.records.decoder import (
    ControlType,
    Marker,
    build_marker,
    iterate_records,
    parse_marker,
)
from ottla.records.plain_records import build_plain_batch, read_plain_run

NOT_PLAIN = TRANSACTIONAL_FLAG | CONTROL_FLAG


class StoredBatch(NamedTuple):
    records: Sequence[Record]
    attributes: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


def encode_batch(records: Sequence[object], codec: RecordCodec, now_ms: int) -> bytearray:
    first = records[0]
    if isinstance(first, TransactionMarker):
        assert len(records) == 1, "a marker is a batch of its own"
        return _marker_batch(first, now_ms)
    if isinstance(first, Transactional):
        return build_plain_batch(
            [codec.encode(_of_transaction(record, first)) for record in records],
            now_ms,
            attributes=TRANSACTIONAL_FLAG,
            producer_id=first.producer_id,
            producer_epoch=first.producer_epoch,
        )
    return build_plain_batch(map(codec.encode, records), now_ms)


def stored_batches(content: bytes, from_offset: int) -> list[StoredBatch]:
    """The batches in bytes of a log, from the one with `from_offset` on.

    Adjacent plain batches may be merged into one: nothing distinguishes them.
    """
    batches: list[StoredBatch] = []
    position = 0
    while True:
        plain: list[Record] = []
        position = read_plain_run(content, position, from_offset, plain)
        if plain:
            batches.append(StoredBatch(plain))
        found = next(iterate_headers(content, position), None)
        if found is None:
            return batches
        position, header = found
        if header.last_offset >= from_offset:
            records = list(iterate_records(content, position))
            producer_id, producer_epoch = header.producer_id, header.producer_epoch
            batches.append(StoredBatch(records, header.attributes, producer_id, producer_epoch))
        position += header.size


def decode_batch(batch: StoredBatch, codec: RecordCodec) -> Iterator[tuple[object, Record]]:
    """The objects to replay, each with its record. ValueError names the offset."""
    for record in batch.records:
        try:
            decoded = _decode(record, batch, codec)
        except ValueError as error:
            raise ValueError(f"the record at offset {record.offset}: {error}") from error
        if decoded is not None:
            yield decoded, record


def replay_plain(machine: Machine, records: Sequence[Record], codec: RecordCodec) -> None:
    """`decode_batch` and replay for plain records, millions of them."""
    decode, replay = codec.decode, machine.replay
    record = None
    try:
        for record in records:
            _, timestamp, key, value, _ = record
            replay(decode(key, value), timestamp)
    except ValueError as error:
        assert record is not None
        raise ValueError(f"the record at offset {record.offset}: {error}") from error


def _decode(record: Record, batch: StoredBatch, codec: RecordCodec) -> object | None:
    """None for other control records, which mean nothing to a machine."""
    if not batch.attributes & NOT_PLAIN:
        return codec.decode(record.key, record.value)
    if batch.attributes & CONTROL_FLAG:
        marker = parse_marker(record)
        if marker is None:
            return None
        return TransactionMarker(
            batch.producer_id,
            batch.producer_epoch,
            marker.coordinator_epoch,
            marker.type is ControlType.COMMIT,
        )
    return Transactional(
        batch.producer_id, batch.producer_epoch, codec.decode(record.key, record.value)
    )


def _of_transaction(record: object, first: Transactional) -> object:
    assert isinstance(record, Transactional)
    assert record.producer_id == first.producer_id, "a batch has one producer"
    return record.record


def _marker_batch(marker: TransactionMarker, now_ms: int) -> bytearray:
    kind = ControlType.COMMIT if marker.committed else ControlType.ABORT
    return build_marker(
        Marker(kind, marker.coordinator_epoch),
        timestamp_ms=now_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
    )
