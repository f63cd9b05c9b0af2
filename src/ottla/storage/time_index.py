"""The sparse index of a segment from timestamp to offset (`.timeindex`).

Kafka's format, 12 bytes an entry, both numbers big-endian:

    timestamp int64         the largest timestamp of the segment so far
    relative offset int32   the offset that has it, minus the base offset of the segment

Timestamps increase from entry to entry. Entries are loaded and written like those of the offset
index.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

from ottla.storage.filesystem import Filesystem
from ottla.storage.index_file import CorruptIndex, IndexFile
from ottla.storage.offset_index import INDEX_SIZE_MAX

ENTRY_SIZE = 12
NO_TIMESTAMP = -1

_ENTRY = struct.Struct(">qI")


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int


class TimeIndex:
    __slots__ = (
        "_file",
        "_loaded",
        "_offsets",
        "_timestamps",
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
        self._timestamps = array("q")  # Increasing.
        self._offsets = array("I")  # Relative, increasing. Invariant: not shorter than _timestamps.
        self._written = 0  # So many entries are in the file.

    @property
    def path(self) -> str:
        return self._file.path

    @property
    def entries_count(self) -> int:
        return len(self._timestamps) if self._loaded else self._file.entries_count()

    @property
    def size(self) -> int:
        return self.entries_count * ENTRY_SIZE

    @property
    def is_full(self) -> bool:
        """One place is kept for the entry that is made when the segment is rolled."""
        return (self.entries_count + 2) * ENTRY_SIZE > self.size_max

    @property
    def last_entry(self) -> TimestampOffset:
        """Without an entry: no timestamp, at the base offset."""
        self._load()
        if not self._timestamps:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._timestamps[-1], self.base_offset + self._offsets[-1])

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Nothing happens unless the timestamp is larger than all before."""
        if not self._loaded:
            self._load()
        timestamps = self._timestamps
        if timestamp <= (timestamps[-1] if timestamps else NO_TIMESTAMP):
            return
        relative = offset - self.base_offset
        assert relative >= (self._offsets[-1] if timestamps else 0)
        self._offsets.append(relative)
        timestamps.append(timestamp)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """The entry with the largest timestamp up to `timestamp`, or the segment's beginning.

        Every record with a timestamp above `timestamp` is at a larger offset than this one.
        """
        self._load()
        index = bisect_right(self._timestamps, timestamp) - 1
        if index < 0:
            return TimestampOffset(NO_TIMESTAMP, self.base_offset)
        return TimestampOffset(self._timestamps[index], self.base_offset + self._offsets[index])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries from `offset` on."""
        self._load()
        count = bisect_left(self._offsets, offset - self.base_offset)
        if count == len(self._offsets):
            return
        del self._timestamps[count:]
        del self._offsets[count:]
        if count < self._written:
            self._file.truncate(count)
            self._written = count

    def reset(self) -> None:
        """Forget all entries, before the segment is indexed anew."""
        self._loaded = True
        del self._timestamps[:]
        del self._offsets[:]
        self._written = 0
        self._file.truncate(0)

    def validate(self) -> None:
        """Raise CorruptIndex if this cannot be the index of its segment."""
        if not self._file.exists:
            raise CorruptIndex(self.path, "it is missing")
        self._file.validate_size()
        count = self._file.entries_count()
        if count:
            (first, _) = _ENTRY.unpack(self._file.read_entry(0))
            (last, offset) = _ENTRY.unpack(self._file.read_entry(count - 1))
            if last < first or last < 0:
                raise CorruptIndex(self.path, f"its timestamps go from {first} to {last}")
            if offset >= 2**31:
                raise CorruptIndex(self.path, f"its last relative offset is {offset}")

    def flush(self) -> None:
        """Write and sync what is not yet in the file, which is made if it is missing."""
        exists = self._file.exists
        if exists and not self._loaded:
            return
        self._load()
        count = len(self._timestamps)
        if exists and count == self._written:
            return
        entries = map(
            _ENTRY.pack,
            self._timestamps[self._written : count],
            self._offsets[self._written : count],
        )
        self._file.write(self._written, b"".join(entries))
        self._written = count

    def unload(self) -> None:
        """Give the memory back; the next use reads the file."""
        self.flush()
        self._loaded = False
        self._timestamps = array("q")
        self._offsets = array("I")

    def rename(self, path: str) -> None:
        self._file.rename(path)

    def remove(self) -> None:
        self._file.remove()

    def _load(self) -> None:
        if self._loaded:
            return
        entries = list(_ENTRY.iter_unpack(self._file.read()))
        self._offsets = array("I", [offset for _, offset in entries])
        self._timestamps = array("q", [timestamp for timestamp, _ in entries])
        self._written = len(entries)
        self._loaded = True
