"""A log's producer state as a file (`<offset>.snapshot`).

Kafka's format, version 1, all numbers big-endian:

    version int16
    crc uint32               CRC-32C of all that follows
    count int32
    count times:
      producer id int64
      producer epoch int16
      last sequence int32
      last offset int64
      offset delta int32     of the last batch: last minus first offset
      timestamp int64
      coordinator epoch int32
      current transaction's first offset int64, -1 for none

Then follows what Kafka forgets and does not read: the batches before the last one. A producer with
several batches in flight may repeat them after a restart.

    batches, each, oldest first:
      producer id int64
      first and last sequence int32, int32
      first and last offset int64, int64
      timestamp int64

The file name is the offset of the first record that the snapshot does not cover.
"""

import re
import struct
from collections.abc import Iterable

from ottla.records.batch import NO_SEQUENCE, NO_TIMESTAMP, SEQUENCE_MAX
from ottla.records.crc import crc32c
from ottla.storage.producer_entry import NO_OFFSET, AppendedBatch, ProducerEntry

VERSION = 1
SNAPSHOT_SUFFIX = ".snapshot"

_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_EARLIER = struct.Struct(">qiiqqq")
_NAME = re.compile(r"(\d{20})\.snapshot")
_NO_BATCH = AppendedBatch(NO_SEQUENCE, NO_SEQUENCE, NO_OFFSET, NO_OFFSET, NO_TIMESTAMP)


class CorruptSnapshot(Exception):
    """The file is torn or damaged; an older one plus the log contain the same state."""


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among the files of a directory, sorted."""
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)


def encode_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    encoded: list[bytes] = []
    earlier: list[bytes] = []
    for entry in entries:
        last = entry.batches[-1] if entry.batches else _NO_BATCH
        encoded.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.last_offset - last.first_offset,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.transaction_first_offset,
            )
        )
        earlier += [_EARLIER.pack(entry.producer_id, *batch) for batch in entry.batches[:-1]]
    body = b"".join((_COUNT.pack(len(encoded)), *encoded, *earlier))
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are no snapshot")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is not known")
    body = memoryview(data)[_PREFIX.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("its checksum does not match")
    (count,) = _COUNT.unpack_from(body)
    end = _COUNT.size + count * _ENTRY.size
    if count < 0 or len(body) < end or (len(body) - end) % _EARLIER.size:
        raise CorruptSnapshot(f"{count} entries do not fill {len(body)} bytes")
    earlier: dict[int, list[AppendedBatch]] = {}
    for producer_id, *batch in _EARLIER.iter_unpack(body[end:]):
        earlier.setdefault(producer_id, []).append(AppendedBatch(*batch))
    return [
        _decode_entry(fields, earlier.get(fields[0], []))
        for fields in _ENTRY.iter_unpack(body[_COUNT.size : end])
    ]


def _decode_entry(fields: tuple[int, ...], earlier: list[AppendedBatch]) -> ProducerEntry:
    producer_id, epoch, last_sequence, last_offset, offset_delta, timestamp, *transaction = fields
    entry = ProducerEntry(producer_id, epoch)
    entry.coordinator_epoch, entry.transaction_first_offset = transaction
    if last_offset >= 0:
        first_sequence = last_sequence
        if last_sequence != NO_SEQUENCE:
            first_sequence = (last_sequence - offset_delta) & SEQUENCE_MAX
        first_offset = last_offset - offset_delta
        last = AppendedBatch(first_sequence, last_sequence, first_offset, last_offset, timestamp)
        for batch in (*earlier, last):
            entry.add_batch(batch)
    entry.last_timestamp = timestamp
    return entry
