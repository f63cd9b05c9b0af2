"""The aborted transactions whose markers are in a segment (`.txnindex`).

Kafka's format, 34 bytes an entry, all numbers big-endian:

    version int16             0
    producer id int64
    first offset int64        of the transaction's first batch, perhaps in an earlier segment
    last offset int64         of its marker
    last stable offset int64  of the log after the marker was appended

Last offsets increase from entry to entry. There is no file without an entry. Entries are loaded and
written like those of the offset index.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import NamedTuple

from ottla.storage.filesystem import Filesystem
from ottla.storage.index_file import CorruptIndex, IndexFile

ENTRY_SIZE = 34
VERSION = 0

_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int  # Of the marker.
    last_stable_offset: int  # Where the next open transaction begins, or after the marker.


class AbortedTransactions(NamedTuple):
    transactions: list[AbortedTransaction]
    complete: bool  # No later segment has another one in the range.


class TransactionIndex:
    __slots__ = ("_entries", "_written", "base_offset", "file")

    def __init__(self, path: str, base_offset: int, filesystem: Filesystem) -> None:
        self.base_offset = base_offset
        self.file = IndexFile(path, ENTRY_SIZE, filesystem)
        self._entries: list[AbortedTransaction] | None = None
        self._written = 0  # How many entries are in the file.

    @property
    def entries(self) -> list[AbortedTransaction]:
        """Sorted by marker offset."""
        if self._entries is None:
            self._entries = list(self._read())
            self._written = len(self._entries)
        return self._entries

    def append(self, transaction: AbortedTransaction) -> None:
        entries = self.entries
        assert not entries or transaction.last_offset > entries[-1].last_offset
        entries.append(transaction)

    def collect(self, first_offset: int, end_offset: int) -> AbortedTransactions:
        """The transactions with records from `first_offset` up to `end_offset`, exclusive."""
        found = []
        for entry in self.entries:
            if entry.last_offset >= first_offset and entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return AbortedTransactions(found, True)
        return AbortedTransactions(found, False)

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose markers are at or after `offset`."""
        count = bisect_left(self.entries, offset, key=attrgetter("last_offset"))
        del self.entries[count:]
        if count < self._written:
            self.file.truncate(count)
            self._written = count

    def reset(self) -> None:
        """Clear all entries, before the segment is reindexed."""
        self._entries = []
        self._written = 0
        self.file.truncate(0)

    def validate(self) -> None:
        """Raise CorruptIndex if this cannot be the index of its segment."""
        if self.file.exists:
            self.file.validate_size()
            for entry in self._read():
                if entry.last_offset < self.base_offset or entry.first_offset > entry.last_offset:
                    raise CorruptIndex(self.file.path, f"it lists {entry}")

    def flush(self) -> None:
        """Write and sync what is not in the file yet."""
        if self._entries is None or len(self._entries) == self._written:
            return
        fresh = self._entries[self._written :]
        self.file.write(self._written, b"".join(_ENTRY.pack(VERSION, *entry) for entry in fresh))
        self._written += len(fresh)

    def unload(self) -> None:
        """Release the memory; the next use reads the file."""
        self.flush()
        self._entries = None

    def _read(self) -> Iterable[AbortedTransaction]:
        for version, *fields in _ENTRY.iter_unpack(self.file.read()):
            if version != VERSION:
                raise CorruptIndex(self.file.path, f"entry version {version} is not known")
            yield AbortedTransaction(*fields)
