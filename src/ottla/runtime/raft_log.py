"""The metadata log and its snapshots on the disk, as the quorum sees them.

Two snapshots are kept, and the log from the older one on, so that a follower that is a little
behind when a snapshot is taken need not fetch it. The log starts at offset 0 or where a snapshot
ends, which then tells the epoch of what is gone.

A snapshot that was fetched takes the log's place when its file has its name: the old log is removed
after that, or by the next `open`.

It belongs to the loop's thread, except for what is said to be for threads.
"""

import logging
from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.raft.control_records import voters_in
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import VoterHistory, VoterSet
from ottla.records.batch import iterate_headers
from ottla.runtime.snapshots import SnapshotStore
from ottla.storage.checkpoints import RECOVERY_POINT_CHECKPOINT, read_offsets, write_offsets
from ottla.storage.config import LogConfig
from ottla.storage.errors import NotCached, StorageError
from ottla.storage.filesystem import Filesystem
from ottla.storage.log import PartitionLog
from ottla.storage.reading import LogSlice
from ottla.storage.text_checkpoint import CorruptCheckpoint

logger = logging.getLogger(__name__)

METADATA_PARTITION: Final = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
READ_BYTES: Final = 1 << 16

_LOG_CONFIG: Final = LogConfig(cleanup_policy=(), message_timestamp_after_max_ms=2**63 - 1)
_BEGINNING: Final = OffsetAndEpoch(0, 0)


class ReadBatches(NamedTuple):
    """Whole batches."""

    data: bytes
    next_offset: int


class RaftLog:
    """Implements `ottla.raft.log.ReplicatedLog`."""

    def __init__(self, log: PartitionLog, snapshots: SnapshotStore) -> None:
        """Made by `open`."""
        self.snapshots = snapshots
        self._log = log
        self._sizes = snapshots.list()  # The oldest first.
        self._start = self._find_start()

    @classmethod
    def open(cls, filesystem: Filesystem, data_directory: str, now_ms: int) -> "RaftLog":
        """For a thread. StorageError when what is there does not fit together."""
        directory = metadata_directory(data_directory)
        filesystem.make_directory(directory)
        snapshots = SnapshotStore(filesystem, directory)
        snapshots.remove_parts()
        recovery_point = _read_recovery_point(filesystem, directory)
        log = PartitionLog.open(
            directory,
            METADATA_PARTITION,
            None,
            _LOG_CONFIG,
            filesystem,
            now_ms,
            recovery_point=recovery_point,
        )
        _complete_epochs(log)
        newest = max(snapshots.list(), default=None)
        if newest is not None and not _continues(log, newest):
            _restart(log, newest.offset)
        if log.log_end_offset < recovery_point:
            raise StorageError(
                directory,
                f"the log ends at offset {log.log_end_offset}, and it had reached {recovery_point}",
            )
        log.flush()
        return cls(log, snapshots)

    # What the core asks.

    @property
    def start_offset(self) -> int:
        return self._start.offset

    @property
    def end_offset(self) -> int:
        return self._log.log_end_offset

    def epoch_of(self, offset: int) -> int:
        if offset == self._start.offset - 1:
            return self._start.epoch
        assert self._start.offset <= offset < self._log.log_end_offset
        return self._log.leader_epochs.epoch_for_offset(offset)

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        entries = self._log.leader_epochs.entries
        index = bisect_right(entries, epoch, key=attrgetter("epoch"))
        if index == 0:
            return self._start
        is_last = index == len(entries)
        end_offset = self._log.log_end_offset if is_last else entries[index].start_offset
        if end_offset <= self._start.offset:
            return self._start
        return OffsetAndEpoch(end_offset, entries[index - 1].epoch)

    @property
    def latest_snapshot_id(self) -> OffsetAndEpoch | None:
        return max(self._sizes, default=None)

    def snapshot_size(self, snapshot_id: OffsetAndEpoch) -> int | None:
        return self._sizes.get(snapshot_id)

    # What the driver does.

    def append(self, batch: bytes | bytearray) -> None:
        """One batch that has its offset and epoch. StorageError, or ApiError on a full disk."""
        self._log.append_as_follower(memoryview(batch))

    def truncate_to(self, offset: int) -> None:
        self._log.truncate_to(offset)

    def restart_at(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """The snapshot, whose file has its name, takes the place of everything."""
        self._sizes = {snapshot_id: size}
        self._start = snapshot_id
        _restart(self._log, snapshot_id.offset)

    def on_snapshot_written(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """The log now starts at the snapshot before; `remove_passed` removes what is older."""
        before = self.latest_snapshot_id
        self._sizes[snapshot_id] = size
        if before is not None:
            self._start = before
            self._sizes = {before: self._sizes[before], snapshot_id: size}

    @property
    def high_watermark(self) -> int:
        """As far as it was acted on; the core may be ahead."""
        return self._log.high_watermark

    def on_committed(self, offset: int) -> None:
        self._log.high_watermark = offset

    # For threads.

    @property
    def truncations_count(self) -> int:
        """What was read or synced while this changed may be of a history that was cut."""
        return self._log.truncations_count

    def flush(self) -> int:
        return self._log.flush()

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset

    @property
    def is_online(self) -> bool:
        return self._log.home.failure is None

    def read(self, offset: int, size_max: int, offset_limit: int) -> ReadBatches:
        """Whole batches from the offset on, at least one, all before the limit."""
        found = self._find(offset, size_max, offset_limit, cached_only=False)
        return ReadBatches(found.read(), found.next_offset)

    def read_cached(self, offset: int, size_max: int, offset_limit: int) -> ReadBatches:
        """Like `read`; NotCached when it would wait for the disk."""
        found = self._find(offset, size_max, offset_limit, cached_only=True)
        data = found.file.read_cached(found.position, found.size)
        if data is None:
            raise NotCached
        return ReadBatches(data, found.next_offset)

    def voters(self, initial: VoterSet) -> VoterHistory:
        """As the latest snapshot and the log after it say."""
        history = VoterHistory(initial)
        offset = self._start.offset
        newest = self.latest_snapshot_id
        if newest is not None:
            offset = newest.offset
            voters = self.snapshots.read(newest).voters
            if voters is not None:
                history.start_from_snapshot(newest.offset, voters)
        for data in self._read_from(offset):
            for position, header in iterate_headers(data):
                if header.base_offset >= offset:
                    for at, voter_set in voters_in(data, position):
                        history.add(at, voter_set)
        return history

    def remove_passed(self) -> None:
        """Free the disk of what is before the log's start."""
        if self._start.offset:
            self._log.delete_records_before(self._start.offset)
            self.snapshots.remove_before(self._start)

    def roll(self) -> None:
        """Begin a segment, so that what is before can be removed one day."""
        self._log.roll()

    def save_recovery_point(self, committed_offset: int) -> None:
        """From here on, damage before it is not taken for the end of a log that was torn.

        What is committed is never cut, so it never has to go back.
        """
        path = f"{self._log.directory}/{RECOVERY_POINT_CHECKPOINT}"
        offset = min(committed_offset, self._log.flushed_offset)
        self._log.flush_leader_epochs()
        write_offsets(self._log.home.filesystem, path, {METADATA_PARTITION: offset})

    def close(self) -> None:
        self._log.close()

    def _find(
        self, offset: int, size_max: int, offset_limit: int, *, cached_only: bool
    ) -> LogSlice:
        found = self._log.read(offset, size_max, offset_limit, cached_only=cached_only)
        assert found is not None, "there is something before the limit"
        return found

    def _read_from(self, offset: int) -> Iterator[bytes]:
        end_offset = self._log.log_end_offset
        while offset < end_offset:
            read = self.read(offset, READ_BYTES, end_offset)
            yield read.data
            offset = read.next_offset

    def _find_start(self) -> OffsetAndEpoch:
        """Segments go as a whole, so the files may start before the snapshot that it starts at."""
        log = self._log
        if log.log_start_offset == 0:
            return _BEGINNING
        for snapshot_id in self._sizes:
            if log.log_start_offset <= snapshot_id.offset <= log.log_end_offset:
                return snapshot_id
        raise StorageError(
            log.directory,
            f"the log is from offset {log.log_start_offset} to {log.log_end_offset}, and no "
            "snapshot has what is before",
        )


def metadata_directory(data_directory: str) -> str:
    return f"{data_directory}/{METADATA_PARTITION}"


def _read_recovery_point(filesystem: Filesystem, directory: str) -> int:
    """Without one, all of the log is checked."""
    try:
        offsets = read_offsets(filesystem, f"{directory}/{RECOVERY_POINT_CHECKPOINT}")
    except CorruptCheckpoint as error:
        logger.warning("the whole log of the metadata is checked: %s", error)
        return 0
    return offsets.get(METADATA_PARTITION, 0)


def _complete_epochs(log: PartitionLog) -> None:
    """The file of the epochs may be missing or damaged; the batches have them too."""
    offset, end_offset = log.log_start_offset, log.log_end_offset
    entries = log.leader_epochs.entries
    if offset == end_offset or (entries and entries[0].start_offset <= offset):
        return
    log.leader_epochs.clear()
    while offset < end_offset:
        found = log.read(offset, READ_BYTES, end_offset)
        assert found is not None, "there is something before the end"
        for _, header in iterate_headers(found.read()):
            if header.partition_leader_epoch > log.leader_epochs.latest_epoch:
                log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
        offset = found.next_offset


def _continues(log: PartitionLog, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether the log has the history of the snapshot, and what comes after it."""
    if log.log_end_offset < snapshot_id.offset:
        return False
    last = snapshot_id.offset - 1
    is_gone = last < log.log_start_offset
    return is_gone or log.leader_epochs.epoch_for_offset(last) == snapshot_id.epoch


def _restart(log: PartitionLog, offset: int) -> None:
    if log.log_end_offset > log.log_start_offset:
        logger.info("a snapshot of all before offset %d takes the place of the log", offset)
    log.truncate_fully_and_start_at(offset)
