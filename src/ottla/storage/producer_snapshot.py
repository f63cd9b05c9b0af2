"""What a log knows about its producers, as a file (`<offset>.snapshot`).

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

The file's name is the offset of the first record that it does not know.
"""

import re
import struct
from collections.abc import Iterable
from typing import NamedTuple

from crc32c import crc32c

VERSION = 1
SNAPSHOT_SUFFIX = ".snapshot"

_PREFIX = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NAME = re.compile(r"(\d{20})\.snapshot")


class CorruptSnapshot(Exception):
    """The file is torn or damaged; an older one and the log have what it should say."""


class SnapshotEntry(NamedTuple):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    transaction_first_offset: int


def snapshot_path(directory: str, offset: int) -> str:
    return f"{directory}/{offset:020d}{SNAPSHOT_SUFFIX}"


def snapshot_offsets(names: Iterable[str]) -> list[int]:
    """The offsets of the snapshots among the files of a directory, in order."""
    return sorted(int(match[1]) for match in map(_NAME.fullmatch, names) if match)


def encode_snapshot(entries: Iterable[SnapshotEntry]) -> bytes:
    encoded = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(encoded)) + b"".join(encoded)
    return _PREFIX.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[SnapshotEntry]:
    if len(data) < _PREFIX.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(data)} bytes are no snapshot")
    version, crc = _PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptSnapshot(f"version {version} is not known")
    body = memoryview(data)[_PREFIX.size :]
    if crc32c(body) != crc:
        raise CorruptSnapshot("its checksum does not match")
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries do not fill {len(body)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]
