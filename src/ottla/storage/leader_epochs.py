"""Which leader epoch wrote which offsets of a log (`leader-epoch-checkpoint`).

An entry says at which offset an epoch begins; epochs and start offsets both increase. Replicas
compare them to find where their logs part (KIP-101, KIP-320).

A change is written by `flush`, which the log calls before it moves its recovery point: batches
carry their epoch, so recovery finds again what a crash lost, and it drops what is stale. An
epoch without batches is not written: it says nothing, and each start of a leader begins one.
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
    """Changed by one thread; `flush` may run in another, for `entries` is replaced, not altered."""

    __slots__ = ("_filesystem", "_written", "entries", "latest_epoch", "path")

    def __init__(self, path: str, filesystem: Filesystem) -> None:
        self.path = path
        self.entries: tuple[EpochEntry, ...] = ()
        self.latest_epoch = UNDEFINED_EPOCH  # Invariant: that of the last entry.
        self._filesystem = filesystem
        self._written: tuple[EpochEntry, ...] = ()  # What the file has.

    @classmethod
    def load(cls, path: str, filesystem: Filesystem) -> "LeaderEpochCache":
        """Empty when there is no file; CorruptCheckpoint when it cannot be understood."""
        cache = cls(path, filesystem)
        cache._written = tuple(_read(filesystem, path))
        cache._replace(cache._written)
        return cache

    def assign(self, epoch: int, start_offset: int) -> None:
        """From `start_offset` on, batches are of `epoch`; entries that contradict this go."""
        assert min(epoch, start_offset) >= 0
        if epoch == self.latest_epoch and start_offset >= self.entries[-1].start_offset:
            return
        kept = self.entries
        while kept and (kept[-1].epoch >= epoch or kept[-1].start_offset >= start_offset):
            kept = kept[:-1]
        self._replace((*kept, EpochEntry(epoch, start_offset)))

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch up to the requested one, and the offset at which it ends.

        Both are -1 when the epoch is unknown here because it is newer. An epoch older than all
        ends where the first known one starts, for its records are gone.
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
        """-1 when the offset lies before the first entry."""
        index = bisect_right(self.entries, offset, key=attrgetter("start_offset"))
        return self.entries[index - 1].epoch if index else UNDEFINED_EPOCH

    def truncate_from_end(self, end_offset: int) -> None:
        """The log now ends at `end_offset`."""
        kept = tuple(entry for entry in self.entries if entry.start_offset < end_offset)
        if kept != self.entries:
            self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """The log now starts at `start_offset`, in the middle of an epoch perhaps."""
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
            self._written = entries  # First, for another thread may flush at the same time.
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
