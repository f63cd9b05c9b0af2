"""The sparse index of a segment from offset to position (`.index`).

Kafka's format, 8 bytes an entry, both numbers big-endian:

    relative offset int32   last offset of a batch, minus the base offset of the segment
    position int32          where that batch starts in the log file

The entries of a segment that nobody reads are not in memory: the first use loads them, `unload`
drops them. Lookups may run beside appends and beside `flush`. What changes the file (flush,
truncate, reset, unload) is for the owner to run one at a time, and `unload` not beside a lookup.
"""

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from ottla.storage.filesystem import Filesystem
from ottla.storage.index_file import CorruptIndex, IndexFile

ENTRY_SIZE = 8
INDEX_SIZE_MAX = 10 * 1024 * 1024
RELATIVE_OFFSET_MAX = 2**31 - 1


class OffsetPosition(NamedTuple):
    offset: int
    position: int


class OffsetIndex:
    __slots__ = (
        "_file",
        "_loaded",
        "_offsets",
        "_positions",
        "_written",
        "base_offset",
        "size_max",
    )

    def __init__(
        self,
        path: str,
        base_offset: int,
        filesystem: Filesystem,
        *,
        size_max: int = INDEX_SIZE_MAX,
    ) -> None:
        self.base_offset = base_offset
        self.size_max = size_max
        self._file = IndexFile(path, ENTRY_SIZE, filesystem)
        self._loaded = False
        self._offsets = array("I")  # Relative, increasing.
        self._positions = array("I")  # Invariant: never shorter than _offsets.
        self._written = 0  # So many entries are in the file.

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def entries_count(self) -> int:
        return len(self._offsets) if self._loaded else self._file.entries_count()

    @property
    def size(self) -> int:
        return self.entries_count * ENTRY_SIZE

    @property
    def is_full(self) -> bool:
        return (self.entries_count + 1) * ENTRY_SIZE > self.size_max

    @property
    def last_offset(self) -> int:
        """The base offset when there is no entry."""
        self._load()
        return self.base_offset + (self._offsets[-1] if self._offsets else 0)

    def append(self, offset: int, position: int) -> None:
        if not self._loaded:
            self._load()
        relative = offset - self.base_offset
        offsets = self._offsets
        assert relative > offsets[-1] if offsets else relative >= 0
        self._positions.append(position)
        offsets.append(relative)

    def lookup(self, offset: int) -> OffsetPosition:
        """The entry with the largest offset up to `offset`, or the beginning of the segment."""
        if not self._loaded:
            self._load()
        index = bisect_right(self._offsets, offset - self.base_offset) - 1
        if index < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + self._offsets[index], self._positions[index])

    def lookup_position(self, position: int) -> OffsetPosition:
        """The entry with the largest position up to `position`, or the segment's beginning."""
        if not self._loaded:
            self._load()
        index = bisect_right(self._positions, position, 0, len(self._offsets)) - 1
        if index < 0:
            return OffsetPosition(self.base_offset, 0)
        return OffsetPosition(self.base_offset + self._offsets[index], self._positions[index])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self._load()
        count = bisect_left(self._offsets, offset - self.base_offset)
        if count == len(self._offsets):
            return
        del self._offsets[count:]
        del self._positions[count:]
        if count < self._written:
            self._file.truncate(count)
            self._written = count

    def reset(self) -> None:
        """Forget all entries, before the segment is indexed anew."""
        self._loaded = True
        del self._offsets[:]
        del self._positions[:]
        self._written = 0
        self._file.truncate(0)

    def validate(self) -> None:
        """Raise CorruptIndex if this cannot be the index of its segment."""
        if not self._file.exists:
            raise CorruptIndex(self.path, "it is missing")
        self._file.validate_size()
        count = self._file.entries_count()
        if count:
            last = int.from_bytes(self._file.read_entry(count - 1)[:4], "big")
            if not 0 < last <= RELATIVE_OFFSET_MAX:
                raise CorruptIndex(self.path, f"its last relative offset is {last}")

    def flush(self) -> None:
        """Write and sync what is not yet in the file, which is made if it is missing."""
        exists = self._file.exists
        if exists and not self._loaded:
            return
        self._load()
        count = len(self._offsets)
        if exists and count == self._written:
            return
        entries = array("I")
        for pair in zip(
            self._offsets[self._written : count],
            self._positions[self._written : count],
            strict=True,
        ):
            entries.extend(pair)
        _swap_if_needed(entries)
        self._file.write(self._written, entries.tobytes())
        self._written = count

    def unload(self) -> None:
        """Give the memory back; the next use reads the file."""
        self.flush()
        self._loaded = False
        self._offsets = array("I")
        self._positions = array("I")

    def rename(self, path: str) -> None:
        self._file.rename(path)

    def remove(self) -> None:
        self._file.remove()

    def _load(self) -> None:
        if self._loaded:
            return
        numbers = array("I", self._file.read())
        _swap_if_needed(numbers)
        self._positions = numbers[1::2]
        self._offsets = numbers[0::2]
        self._written = len(self._offsets)
        self._loaded = True


def _swap_if_needed(numbers: "array[int]") -> None:
    if sys.byteorder == "little":
        numbers.byteswap()
