"""The metadata log and its snapshots on disk, as the quorum sees them.

Two snapshots are kept, and the log from the older one on, so that a follower that is slightly
behind when a snapshot is taken need not fetch it. The log starts at offset 0 or where a snapshot
ends, which then provides the epoch of what is gone.

A fetched snapshot replaces the log once its file has its final name: the old log is removed after
that, or by the next `open`.

Every batch is checked when the log is opened. Damage to what had been synced aborts the start: a
voter that forgets what it has acknowledged can undo what a majority decided, and forgotten topics
take their records along. Only what is past the recovery point may be torn.

Belongs to the loop's thread, except for what is marked as for threads.
"""

import logging
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.raft.control_records import voters_in
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import VoterHistory, VoterSet
from ottla.records.batch import BatchHeader, iterate_headers
from ottla.runtime.recovery_point import RecoveryPoint
from ottla.runtime.snapshots import SnapshotStore
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog, DamagedMetadata, NotCached, StorageError
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.leader_epochs import UNDEFINED_EPOCH
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.reading import LogSlice
from ottla.storage.recovery import LoadRequest

logger = logging.getLogger(__name__)

METADATA_PARTITION: Final = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
READ_BYTES: Final = 1 << 16

_LOG_CONFIG: Final = LogConfig(cleanup_policy=(), message_timestamp_after_max_ms=2**63 - 1)
_BEGINNING: Final = OffsetAndEpoch(0, 0)
_UNKNOWN_OFFSET: Final = 2**63 - 1
_DAMAGED: Final = (
    "This had been synced, so it is not truncated, and nothing was changed. If other nodes of the "
    "cluster run, move the log directory away and start the node with --join HOST:PORT of one of "
    "them; otherwise restore the directory from a backup"
)


class ReadBatches(NamedTuple):
    """Whole batches."""

    data: bytes
    next_offset: int


class RaftLog:
    """Implements `ottla.raft.log.ReplicatedLog`."""

    def __init__(
        self, log: PartitionLog, snapshots: SnapshotStore, recovery_point: RecoveryPoint
    ) -> None:
        """Constructed by `open`."""
        self.snapshots = snapshots
        self._log = log
        self._recovery_point = recovery_point
        self._recovery_point_guard = threading.Lock()  # It never runs ahead of a truncation.
        self._sizes = snapshots.list()  # Oldest first.
        self._start = self._find_start()

    @classmethod
    def open(cls, filesystem: Filesystem, data_directory: str, now_ms: int) -> "RaftLog":
        """Call in a thread. StorageError if the files are inconsistent."""
        directory = metadata_directory(data_directory)
        filesystem.make_directory(directory)
        snapshots = SnapshotStore(filesystem, directory)
        snapshots.remove_parts()
        recovery_point = RecoveryPoint(filesystem, directory)
        reached = recovery_point.reached
        try:
            request = LoadRequest(
                directory,
                METADATA_PARTITION,
                _LOG_CONFIG,
                now_ms,
                recovery_point=_UNKNOWN_OFFSET if reached is None else reached.offset,
                checks_all=True,
            )
            log = open_partition_log(LogDirectory(parent_of(directory), filesystem), request)
            _validate_history(log)
        except CorruptLog as error:
            raise DamagedMetadata(data_directory, f"{error}. {_DAMAGED}") from error
        _do_without_damaged_snapshot(log, snapshots, data_directory)
        newest = max(snapshots.list(), default=None)
        if (
            newest is not None
            and newest.offset >= (reached or _BEGINNING).offset
            and not _continues(log, newest)
        ):
            _restart(log, newest.offset)
        opened = cls(log, snapshots, recovery_point)
        if reached is not None:
            opened._validate_reached(data_directory, reached)
        opened.flush()
        return opened

    # Called by the core.

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

    # Called by the driver.

    def append(self, batch: bytes | bytearray) -> None:
        """One batch with its offset and epoch. StorageError, or ApiError on a full disk."""
        self._log.append_as_follower(memoryview(batch))

    def truncate_to(self, offset: int) -> None:
        with self._recovery_point_guard:
            self._take_back(self._end_at(self._log.end_before(offset)))
            self._log.truncate_to(offset)

    def restart_at(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """The snapshot, whose file has its final name, replaces everything."""
        with self._recovery_point_guard:
            self._sizes = {snapshot_id: size}
            self._start = snapshot_id
            _restart(self._log, snapshot_id.offset)

    def on_snapshot_written(self, snapshot_id: OffsetAndEpoch, size: int) -> None:
        """The log now starts at the previous snapshot; `remove_passed` removes what is older."""
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
        """If it changes during a read or sync, what was read or synced may be truncated."""
        return self._log.truncations_count

    def flush(self) -> int:
        truncations_count = self._log.truncations_count
        flushed_offset = self._log.flush()
        with self._recovery_point_guard:
            if truncations_count == self._log.truncations_count:
                try:
                    self._note_synced()
                except OSError as error:
                    raise self._log.log_directory.on_error(error, while_syncing=True) from error
        return flushed_offset

    def expect_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Call before a fetched snapshot gets its final name: the log may be longer, and wrong."""
        with self._recovery_point_guard:
            self._take_back(snapshot_id)

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset

    def watch_directory(self, is_in_place: Callable[[], bool]) -> None:
        """From here on a flush fails if the log directory has disappeared."""
        self._log.log_directory.is_in_place = is_in_place

    @property
    def is_online(self) -> bool:
        return self._log.log_directory.failure is None

    def read(self, offset: int, size_max: int, offset_limit: int) -> ReadBatches:
        """Whole batches from the offset on, at least one, all before the limit."""
        found = self._find(offset, size_max, offset_limit, cached_only=False)
        return ReadBatches(found.read(), found.next_offset)

    def read_cached(self, offset: int, size_max: int, offset_limit: int) -> ReadBatches:
        """Like `read`, but NotCached if it would wait for the disk."""
        found = self._find(offset, size_max, offset_limit, cached_only=True)
        data = found.read_cached()
        if data is None:
            raise NotCached
        return ReadBatches(data, found.next_offset)

    def voters(self, initial: VoterSet) -> VoterHistory:
        """According to the latest snapshot and the log after it."""
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
        """Free the disk space of what is before the log's start."""
        if self._start.offset:
            self._log.delete_records_before(self._start.offset)
            self.snapshots.remove_before(self._start)

    def roll(self) -> None:
        """Begin a segment, so that earlier ones can be removed later."""
        self._log.roll()

    def sync_recovery_point(self) -> None:
        """It moves with each flush; this makes it survive a power loss."""
        with self._recovery_point_guard:
            self._recovery_point.sync()

    def close(self) -> None:
        self._log.close()
        with self._recovery_point_guard:
            self._note_synced()
            self._recovery_point.close()

    def _take_back(self, end: OffsetAndEpoch) -> None:
        reached = self._recovery_point.reached
        if reached is None or reached.offset > end.offset:
            self._recovery_point.go_back(end)

    def _note_synced(self) -> None:
        self._recovery_point.note(self._end_at(self._log.flushed_offset))

    def _end_at(self, offset: int) -> OffsetAndEpoch:
        """With the epoch of the record before it, as far as the log knows it."""
        if offset <= self._start.offset:
            return OffsetAndEpoch(offset, self._start.epoch)
        return OffsetAndEpoch(offset, self._log.leader_epochs.epoch_for_offset(offset - 1))

    def _validate_reached(self, data_directory: str, reached: OffsetAndEpoch) -> None:
        log = self._log
        problem = None
        if log.log_end_offset < reached.offset:
            problem = (
                f"the metadata log ends at offset {log.log_end_offset}, "
                f"and it had reached {reached.offset}"
            )
        elif self._start.offset < reached.offset and self._end_at(reached.offset) != reached:
            problem = f"the metadata log has another epoch than {reached} says"
        if problem is not None:
            raise DamagedMetadata(data_directory, f"{problem}. {_DAMAGED}")

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
        """Segments are removed whole, so the files may start before the snapshot."""
        log = self._log
        if log.log_start_offset == 0:
            return _BEGINNING
        for snapshot_id in self._sizes:
            if log.log_start_offset <= snapshot_id.offset <= log.log_end_offset:
                return snapshot_id
        raise DamagedMetadata(
            log.directory,
            f"the log is from offset {log.log_start_offset} to {log.log_end_offset}, and no "
            "snapshot has what is before",
        )


def metadata_directory(data_directory: str) -> str:
    return f"{data_directory}/{METADATA_PARTITION}"


def _validate_history(log: PartitionLog) -> None:
    """Check what no checksum covers: offsets without gaps, epochs that begin with their leader.

    The epochs are read from the batches; their file may be missing or damaged.
    """
    offset, end_offset = log.log_start_offset, log.log_end_offset
    log.leader_epochs.clear()
    while offset < end_offset:
        found = log.read(offset, READ_BYTES, end_offset)
        assert found is not None, "there is something before the end"
        for position, header in iterate_headers(found.read()):
            problem = _problem(header, offset, log.leader_epochs.latest_epoch)
            if problem is not None:
                raise CorruptLog(found.file.path, found.position + position, offset, problem)
            if header.partition_leader_epoch > log.leader_epochs.latest_epoch:
                log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
            offset = header.next_offset


def _problem(header: BatchHeader, offset: int, epoch: int) -> str | None:
    if header.base_offset != offset:
        return f"a batch of offset {header.base_offset} is where {offset} should be"
    if header.partition_leader_epoch < max(epoch, 0):
        return f"epoch {header.partition_leader_epoch} comes after {epoch}"
    begins = header.partition_leader_epoch > epoch and epoch != UNDEFINED_EPOCH
    if begins and not header.is_control:
        return f"no leader begins epoch {header.partition_leader_epoch}"
    return None


def _do_without_damaged_snapshot(
    log: PartitionLog, snapshots: SnapshotStore, data_directory: str
) -> None:
    """If the newest is damaged, and the log has everything in it, from an older one on."""
    *older, newest = sorted(snapshots.list()) or (None,)
    if newest is None:
        return
    try:
        snapshots.read(newest)
    except StorageError as error:
        bases = [snapshot.offset for snapshot in older if _is_intact(snapshots, snapshot)]
        start = log.log_start_offset
        if log.log_end_offset < newest.offset or not (
            start == 0 or any(start <= base for base in bases)
        ):
            raise DamagedMetadata(data_directory, f"{error.cause}. {_DAMAGED}") from error
        logger.error("%s; continuing without it", error.cause)
        snapshots.set_aside(newest)


def _is_intact(snapshots: SnapshotStore, snapshot_id: OffsetAndEpoch) -> bool:
    try:
        snapshots.read(snapshot_id)
    except StorageError:
        return False
    return True


def _continues(log: PartitionLog, snapshot_id: OffsetAndEpoch) -> bool:
    """Whether the log has the snapshot's history, and what follows it."""
    if log.log_end_offset < snapshot_id.offset:
        return False
    last = snapshot_id.offset - 1
    is_gone = last < log.log_start_offset
    return is_gone or log.leader_epochs.epoch_for_offset(last) == snapshot_id.epoch


def _restart(log: PartitionLog, offset: int) -> None:
    if log.log_end_offset > log.log_start_offset:
        logger.info("a snapshot of all before offset %d replaces the log", offset)
    log.truncate_fully_and_start_at(offset)
