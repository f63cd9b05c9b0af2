"""The sparse index of a segment from timestamp to offset (`.timeindex`).

Kafka's format, 12 bytes an entry, both numbers big-endian:

    timestamp int64         the largest timestamp of the segment so far
    relative offset int32   the offset that has it, minus the base offset of the segment
"""

import struct
from array import array
from bisect import bisect_right
from typing import NamedTuple

from ottla.storage.index_file import CorruptIndex
from ottla.storage.sparse_index import (
    RELATIVE_OFFSET_MAX,
    Column,
    SparseIndex,
    swap_if_needed,
)

ENTRY_SIZE = 12
NO_TIMESTAMP = -1

_ENTRY = struct.Struct(">qI")


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex(SparseIndex):
    __slots__ = ()

    ENTRY_SIZE = ENTRY_SIZE
    OFFSETS_COLUMN = 1

    def is_full(self, size_max: int) -> bool:
        """One entry stays free for the one added when the segment is rolled."""
        return (self.entries_count + 2) * ENTRY_SIZE > size_max

    @property
    def last_entry(self) -> TimestampOffset:
        """Without entries: no timestamp, at the base offset."""
        self._load()
        return self._entry(len(self._first) - 1)

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Does nothing unless the timestamp is larger than all before."""
        if not self._loaded:
            self._load()
        timestamps = self._first
        if timestamp <= (timestamps[-1] if timestamps else NO_TIMESTAMP):
            return
        relative = offset - self.base_offset
        assert relative >= (self._second[-1] if timestamps else 0)
        self._second.append(relative)
        timestamps.append(timestamp)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The entry with the largest timestamp not above `timestamp`, or the segment's beginning.

        Every record with a timestamp above `timestamp` has a larger offset than this entry.
        """
        self._load()
        return self._entry(bisect_right(self._first, timestamp) - 1)

    def _entry(self, index: int) -> TimestampOffset:
        if index < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._first[index], self.base_offset + self._second[index])

    def _validate_entries(self, first: bytes, last: bytes) -> None:
        smallest, _ = _ENTRY.unpack(first)
        largest, relative = _ENTRY.unpack(last)
        if largest < smallest or largest < 0:
            raise CorruptIndex(self.file.path, f"its timestamps go from {smallest} to {largest}")
        if relative > RELATIVE_OFFSET_MAX:
            raise CorruptIndex(self.file.path, f"its last relative offset is {relative}")

    @staticmethod
    def _encode(first: Column, second: Column) -> bytes:
        """Column by column in 4-byte words, since a log may wait while many entries are written."""
        timestamps, offsets = first[:], second[:]
        swap_if_needed(timestamps)
        swap_if_needed(offsets)
        halves = array("I", timestamps.tobytes())
        entries = array("I", bytes(ENTRY_SIZE * len(first)))
        entries[0::3] = halves[0::2]
        entries[1::3] = halves[1::2]
        entries[2::3] = offsets
        return entries.tobytes()

    @staticmethod
    def _decode(entries: bytes) -> tuple[Column, Column]:
        pairs = list(_ENTRY.iter_unpack(entries))
        timestamps = array("q", [timestamp for timestamp, _ in pairs])
        return timestamps, array("I", [offset for _, offset in pairs])
