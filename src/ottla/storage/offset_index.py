"""The sparse index of a segment from offset to position (`.index`).

Kafka's format, 8 bytes an entry, both numbers big-endian:

    relative offset int32   last offset of a batch, minus the base offset of the segment
    position int32          where that batch starts in the log file
"""

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

ENTRY_SIZE = 8


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex(SparseIndex):
    __slots__ = ()

    ENTRY_SIZE = ENTRY_SIZE
    OFFSETS_COLUMN = 0

    def is_full(self, size_max: int) -> bool:
        return (self.entries_count + 1) * ENTRY_SIZE > size_max

    @property
    def last_offset(self) -> int:
        """The base offset if there is no entry."""
        self._load()
        return self.base_offset + (self._first[-1] if self._first else 0)

    def append(self, offset: int, position: int) -> None:
        if not self._loaded:
            self._load()
        relative = offset - self.base_offset
        offsets = self._first
        assert relative > offsets[-1] if offsets else relative >= 0
        self._second.append(position)
        offsets.append(relative)

    def lookup(self, offset: int) -> OffsetPosition:
        """The entry with the largest offset not above `offset`, or the beginning of the segment."""
        if not self._loaded:
            self._load()
        return self._entry(bisect_right(self._first, offset - self.base_offset) - 1)

    def lookup_position(self, position: int) -> OffsetPosition:
        """The entry with the largest position not above `position`, or the segment's beginning."""
        if not self._loaded:
            self._load()
        return self._entry(bisect_right(self._second, position, 0, len(self._first)) - 1)

    def _entry(self, index: int) -> OffsetPosition:
        if index < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + self._first[index], self._second[index])

    def _validate_entries(self, first: bytes, last: bytes) -> None:
        del first
        relative = int.from_bytes(last[:4], "big")
        if not 0 < relative <= RELATIVE_OFFSET_MAX:
            raise CorruptIndex(self.file.path, f"its last relative offset is {relative}")

    @staticmethod
    def _encode(first: Column, second: Column) -> bytes:
        entries = array("I", bytes(ENTRY_SIZE * len(first)))
        entries[0::2] = first
        entries[1::2] = second
        swap_if_needed(entries)
        return entries.tobytes()

    @staticmethod
    def _decode(entries: bytes) -> tuple[Column, Column]:
        numbers = array("I", entries)
        swap_if_needed(numbers)
        return numbers[0::2], numbers[1::2]
