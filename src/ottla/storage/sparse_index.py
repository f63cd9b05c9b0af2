"""The common part of the offset index and the time index of a segment.

An entry is two numbers, of which the first increases from entry to entry. Entries are loaded on
first use and dropped by `unload`. Lookups may run concurrently with appends and `flush`. The owner
serializes what changes the file (flush, truncate, reset, unload), and must not run `unload`
concurrently with a lookup.
"""

import logging
import sys
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from operator import le, lt
from typing import ClassVar, TypeAlias

from ottla.storage.filesystem import Filesystem
from ottla.storage.index_file import CorruptIndex, IndexFile

logger = logging.getLogger(__name__)

INDEX_SIZE_MAX = 10 * 1024 * 1024
RELATIVE_OFFSET_MAX = 2**31 - 1

Column: TypeAlias = "array[int]"


class SparseIndex(ABC):
    __slots__ = ("_first", "_is_synced", "_loaded", "_second", "_written", "base_offset", "file")

    ENTRY_SIZE: ClassVar[int]
    OFFSETS_COLUMN: ClassVar[int]  # The column with the relative offsets.

    def __init__(
        self,
        path: str,
        base_offset: int,
        filesystem: Filesystem,
    ) -> None:
        self.base_offset = base_offset
        self.file = IndexFile(path, self.ENTRY_SIZE, filesystem)
        self._loaded = False
        # Invariant: the second column is never the shorter one, so that a lookup concurrent with an
        # append finds in the second what it found in the first.
        self._first, self._second = self._decode(b"")
        self._written = 0  # How many entries are in the file.
        self._is_synced = True  # Whether what was written is synced.

    @property
    def entries_count(self) -> int:
        return len(self._first) if self._loaded else self.file.entries_count()

    @property
    def size(self) -> int:
        return self.entries_count * self.ENTRY_SIZE

    @abstractmethod
    def _validate_entries(self, first: bytes, last: bytes) -> None:
        """Raise CorruptIndex if these cannot be the first and the last entry."""

    @staticmethod
    @abstractmethod
    def _encode(first: Column, second: Column) -> bytes: ...

    @staticmethod
    @abstractmethod
    def _decode(entries: bytes) -> tuple[Column, Column]: ...

    def pairs(self) -> list[tuple[int, int]]:
        """All entries, with absolute offsets."""
        self._load()
        columns = [list(self._first), list(self._second[: len(self._first)])]
        offsets = columns[self.OFFSETS_COLUMN]
        columns[self.OFFSETS_COLUMN] = [self.base_offset + relative for relative in offsets]
        return list(zip(*columns, strict=True))

    @property
    def is_refused(self) -> bool:
        """Whether the file has entries that are ignored because they are invalid."""
        self._load()
        return not self._first and self.file.entries_count() > 0

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self._load()
        offsets = (self._first, self._second)[self.OFFSETS_COLUMN]
        count = bisect_left(offsets, offset - self.base_offset, 0, len(self._first))
        if count == len(self._first):
            return
        del self._first[count:]
        del self._second[count:]
        if count < self._written:
            self.file.truncate(count)
            self._written = count

    def reset(self) -> None:
        """Clear all entries, before the segment is reindexed."""
        self._loaded = True
        del self._first[:]
        del self._second[:]
        self._written = 0
        self.file.truncate(0)

    def validate(self) -> None:
        """Raise CorruptIndex if this cannot be the index of its segment."""
        if not self.file.exists:
            raise CorruptIndex(self.file.path, "it is missing")
        self.file.validate_size()
        count = self.file.entries_count()
        if count:
            self._validate_entries(self.file.read_entry(0), self.file.read_entry(count - 1))

    def flush(self, *, sync: bool = True) -> None:
        """Write and sync what is not in the file yet, creating it if it is missing.

        Without `sync` other programs can read it, but a crash may lose it.
        """
        exists = self.file.exists
        if exists and not self._loaded:
            return
        self._load()
        written, count = self._written, len(self._first)
        if exists and count == written and (self._is_synced or not sync):
            return
        fresh = self._encode(self._first[written:count], self._second[written:count])
        self.file.write(written, fresh, sync=sync)
        self._written = count
        self._is_synced = sync

    def unload(self) -> None:
        """Release the memory; the next use reads the file."""
        self.flush()
        self._loaded = False
        self._first, self._second = self._decode(b"")

    def _load(self) -> None:
        if self._loaded:
            return
        first, second = self._decode(self.file.read())
        if not self._is_sound(first, second):
            # A missing index only slows lookups down; a wrong one would hide batches.
            logger.warning("%s is not valid and is ignored", self.file.path)
            first, second = self._decode(b"")
        self._second = second
        self._first = first
        self._written = len(first)
        self._loaded = True

    def _is_sound(self, first: Column, second: Column) -> bool:
        if not first:
            return True
        return (
            first[0] >= 0
            and self.file.is_whole()
            and ((first, second)[self.OFFSETS_COLUMN][-1] <= RELATIVE_OFFSET_MAX)
            and all(map(lt, first, first[1:]))
            and all(map(le, second, second[1:]))
        )


def swap_if_needed(numbers: Column) -> None:
    """Convert to the file's byte order, or from it."""
    if sys.byteorder == "little":
        numbers.byteswap()
