"""Which leader epoch wrote which offsets of a log (`leader-epoch-checkpoint`).

An entry gives the offset at which an epoch begins; epochs and start offsets both increase. Replicas
compare them to find where their logs diverge (KIP-101, KIP-320).

A change is written by `flush`, which the log calls before it moves its recovery point: batches
carry their epoch, so recovery restores what a crash lost and drops what is stale. An epoch without
batches is not written: it carries no information, and every new leader starts one.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from ottla.storage.filesystem import Filesystem
from ottla.storage.text_checkpoint import CorruptCheckpoint, read_entries, write_entries

UNDEFINED_EPOCH = -1
UNDEFINED_EPOCH_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochCache:
    """Changed by one thread; another may `flush`, because `entries` is replaced, never mutated."""

    __slots__ = ("_filesystem", "_written", "entries", "latest_epoch", "path")

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self.path = path
        self.entries: tuple[EpochEntry, ...] = ()
        self.latest_epoch = UNDEFINED_EPOCH  # Invariant: the epoch of the last entry.
        self._filesystem = filesystem
        self._written: tuple[EpochEntry, ...] = ()  # What the file contains.

    @classmethod
    def load(cls, path: str, filesystem: Filesystem) -> "LeaderEpochCache":
        """Empty if there is no file; CorruptCheckpoint if it cannot be parsed."""
        cache = cls(path, filesystem)
        cache._written = tuple(_read(filesystem, path))
        cache._replace(cache._written)
        return cache

    def assign(self, epoch: int, start_offset: int) -> None:
        """Batches from `start_offset` on have `epoch`; contradicting entries are dropped."""
        assert min(epoch, start_offset) >= 0
        if epoch == self.latest_epoch and start_offset >= self.entries[-1].start_offset:
            return
        kept = self.entries
        while kept and (kept[-1].epoch >= epoch or kept[-1].start_offset >= start_offset):
            kept = kept[:-1]
        self._replace((*kept, EpochEntry(epoch, start_offset)))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch not above the requested one, and its end offset.

        Both are -1 if the epoch is newer than all known ones. An epoch older than all known ones
        ends where the first of them starts, because its records are gone.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if epoch == self.latest_epoch:
            return epoch, log_end_offset
        next_index = bisect_right(self.entries, epoch, key=attrgetter("epoch"))
        if next_index == len(self.entries):
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        floor = self.entries[next_index - 1].epoch if next_index else epoch
        return floor, self.entries[next_index].start_offset

    def epoch_for_offset(self, offset: int) -> int:
        """-1 if the offset is before the first entry."""
        index = bisect_right(self.entries, offset, key=attrgetter("start_offset"))
        return self.entries[index - 1].epoch if index else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        kept = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
        if kept != self.entries:
            self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`, perhaps in the middle of an epoch."""
        later = tuple(entry for entry in self.entries if entry.start_offset > start_offset)
        gone_count = len(self.entries) - len(later)
        if gone_count:
            first = self.entries[gone_count - 1]._replace(start_offset=start_offset)
            if (first, *later) != self.entries:
                self._replace((first, *later))

    def clear(self) -> None:
        self._replace(())

    def flush(self, log_end_offset: int) -> None:
        entries = self.entries
        while entries and entries[-1].start_offset >= log_end_offset:
            entries = entries[:-1]
        before = self._written
        if entries != before:
            self._written = entries  # Set first, since another thread may flush at the same time.
            try:
                write_entries(self._filesystem, self.path, entries)
            except OSError:
                self._written = before
                raise

    def _replace(self, entries: tuple[EpochEntry, ...]) -> None:
        self.entries = entries
        self.latest_epoch = entries[-1].epoch if entries else UNDEFINED_EPOCH


def _read(filesystem: Filesystem, path: str) -> list[EpochEntry]:
    entries: list[EpochEntry] = []
    for fields in read_entries(filesystem, path):
        try:
            epoch, start_offset = map(int, fields)
        except ValueError:
            raise CorruptCheckpoint(path, f"{' '.join(fields)!r} is no epoch entry") from None
        last = entries[-1] if entries else EpochEntry(UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
        if epoch <= last.epoch or start_offset <= last.start_offset:
            raise CorruptCheckpoint(path, f"epoch {epoch} at {start_offset} comes after {last}")
        entries.append(EpochEntry(epoch, start_offset))
    return entries
