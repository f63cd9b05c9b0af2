"""Batches to write, and the contents of batches that were read."""

from ottla.client.wire.producing import Producer
from ottla.records.batch import Buffer
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.isolation import FoundBatch


def batch(
    *values: bytes,
    timestamp: int = 1_700_000_000_000,
    producer: Producer | None = None,
    sequence: int = 0,
    transactional: bool = False,
) -> bytes:
    records = [Record(timestamp=timestamp, key=b"k", value=value) for value in values]
    if producer is None:
        return bytes(build_batch(records))
    return bytes(
        build_batch(
            records,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


def values_of(buffer: Buffer, found: FoundBatch) -> list[bytes | None]:
    return [record.value for record in iterate_records(buffer, found.position)]
