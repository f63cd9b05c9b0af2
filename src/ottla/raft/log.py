"""The log as the core sees it: offsets and epochs, never bytes.

An epoch's records are contiguous and epochs increase along the log, so an offset and the epoch of
the record before it identify everything before that offset (the log matching property).
"""

from typing import NamedTuple, Protocol


class OffsetAndEpoch(NamedTuple):
    """An end of a log: the offset, and the epoch of the record before it.

    As a snapshot id: everything before the offset is in the snapshot.
    """

    offset: int
    epoch: int


class ReplicatedLog(Protocol):
    """Reflects what every earlier `Ready` requested, synced or not."""

    # Invariant: start_offset <= end_offset; what is before start_offset is in a snapshot.

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    def epoch_of(self, offset: int) -> int:
        """The epoch of the record at `offset`, at least `start_offset - 1`; 0 for offset -1."""

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The largest epoch in the log not above `epoch`, and the offset after its last record.
        If there is none: the start offset and the epoch of the record before it.
        """

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None: ...

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        """In bytes; None if the snapshot does not exist, or no longer."""


class PendingLog:
    """The log as it will be once the Ready being built has been acted on."""

    def __init__(self, log: ReplicatedLog) -> None:
        self._log = log
        self.end_offset = log.end_offset
        self.last_epoch = log.epoch_of(log.end_offset - 1)

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        return self._log.latest_snapshot_id

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        return self._log.snapshot_size(snapshot_id)

    def epoch_before(self, offset: int) -> int:
        """The epoch of the record before an offset of the log."""
        return self.last_epoch if offset == self.end_offset else self._log.epoch_of(offset - 1)

    def epoch_before_start(self) -> int:
        return self._log.epoch_of(self._log.start_offset - 1)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        return self.end if epoch >= self.last_epoch else self._log.end_offset_for_epoch(epoch)

    def append(self, end_offset: int, epoch: int) -> None:
        assert end_offset > self.end_offset
        assert epoch >= self.last_epoch
        self.end_offset = end_offset
        self.last_epoch = epoch

    def truncate_to(self, offset: int) -> None:
        assert self.start_offset <= offset <= self.end_offset
        self.end_offset = offset
        self.last_epoch = self._log.epoch_of(offset - 1)

    def restart_at(self, end: OffsetAndEpoch) -> None:
        """A snapshot has replaced everything."""
        self.end_offset, self.last_epoch = end

    def settle(self) -> None:
        """The Ready was acted on: both views are equal again."""
        assert self._log.end_offset == self.end_offset, "a Ready was not acted on"
