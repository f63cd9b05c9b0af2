"""The log of one partition: what may be appended, what can be read, what is kept.

Threads: appends, reads and changes may come from any thread; a lock, held for microseconds,
serializes changes. `flush` syncs outside the lock, so an append never waits for the disk. `read`
takes no lock.

Order of durability: a batch may be acknowledged after a flush that began after its append. A flush
syncs the segments rolled since the last one with their indexes, then the active segment and the
file names, and then moves `flushed_offset`. The manager periodically writes that offset to disk,
after the leader epochs: it is the recovery point, past which a start after a crash checks and
reindexes everything.
"""

import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from ottla.controller.config import IMPORT_OPEN
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    assign,
    iterate_headers,
    read_header,
    set_append_time,
)
from ottla.records.decoder import iterate_records, parse_marker
from ottla.storage.append_checks import invalid_timestamp, only_imports, validate_fetched
from ottla.storage.appended import NO_APPEND_TIME, Appended
from ottla.storage.checkpoints import sync_partition_metadata, write_partition_metadata
from ottla.storage.cleaned_segment import CleanedSegment
from ottla.storage.config import LogConfig
from ottla.storage.damage import Damage
from ottla.storage.errors import CorruptLog
from ottla.storage.loading import LEADER_EPOCH_CHECKPOINT, LoadedLog
from ottla.storage.local_log import LocalLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.log_history import LogHistory
from ottla.storage.log_lookups import LogLookups
from ottla.storage.reading import FoundTimestamp, LogPosition, LogSlice, ReadHint, index_of
from ottla.storage.recovery import LoadRequest
from ottla.storage.retention import expired_count, passed_count
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction

_BEGINNING = struct.Struct(">qii")  # Base offset, batch length, partition leader epoch.


_new_tuple = tuple.__new__  # Cheaper than the constructors of named tuples.


class PartitionLog:
    __slots__ = (
        "_history",
        "_local",
        "_lock",
        "_lookups",
        "config",
        "directory",
        "high_watermark",
        "identity_unsynced",
        "leader_epochs",
        "log_directory",
        "log_start_offset",
        "may_lack_synced",
        "producers",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        log_directory: LogDirectory,
        request: LoadRequest,
        loaded: LoadedLog,
    ) -> None:
        """Constructed by `opening.open_partition_log`."""
        self.log_directory = log_directory
        self.directory = request.directory
        self.topic_partition = request.topic_partition
        self.topic_id = request.topic_id
        self.leader_epochs = loaded.leader_epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.may_lack_synced = loaded.may_lack_synced
        # Moved by replication; retention and compaction remove nothing at or past it.
        # Invariant: log_start_offset <= high_watermark <= log_end_offset.
        self.high_watermark = loaded.log_start_offset
        # Changed by `configure`; a slot, as every append reads it often.
        self.config = request.config
        # The topic id is written but not synced, perhaps by a process that was killed.
        self.identity_unsynced = request.topic_id is not None and not request.clean_shutdown
        self._lock = threading.Lock()
        self._history = LogHistory(loaded.leader_epochs, loaded.producers)
        self._local = LocalLog(
            log_directory=log_directory,
            directory=request.directory,
            config=request.config,
            segments=loaded.segments,
            end_offset=loaded.log_end_offset,
            lock=self._lock,
            on_roll=self._history.on_roll,
        )
        self._lookups = LogLookups(self._local, self._lock, request.topic_partition, self._failed)

    def identify(self, topic_id: UUID) -> None:
        """Write the topic id; durable with the first flush, before anything is acked."""
        with self._disk_errors():
            write_partition_metadata(self.log_directory.filesystem, self.directory, topic_id)
        self.topic_id = topic_id
        self.identity_unsynced = True

    def __repr__(self) -> str:
        return f"PartitionLog({self.directory}, {self.log_start_offset}..{self.log_end_offset})"

    def configure(self, config: LogConfig) -> None:
        with self._lock:
            self.config = config
            self._local.configure(config)

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self._local.end[2]

    @property
    def flushed_offset(self) -> int:
        """Everything before this offset is on disk: the recovery point."""
        return self._local.flushed_offset

    @property
    def appended_bytes(self) -> int:
        """Counts from an arbitrary origin; deletion does not lower it, truncation may."""
        return self._local.appended_bytes

    @property
    def size(self) -> int:
        """Bytes in all batches."""
        return self._local.size

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; the last one is the active segment."""
        return self._local.segments

    @property
    def damage(self) -> list[Damage]:
        """The parts that are not served, in offset order."""
        return [damage for segment in self._local.segments for damage in segment.damage]

    def ends(self) -> list[LogPosition]:
        """The end position of each segment, with the offset that follows it."""
        return self._local.ends()

    def note_damage(
        self, segment: Segment, damage: tuple[Damage, ...], truncations_count: int
    ) -> bool:
        """Stop serving these parts of the segment; False if the log was truncated."""
        with self._lock:
            if segment.removed or self._local.truncations_count != truncations_count:
                return False
            segment.damage = damage
            return True

    def distrust(self, offset: int) -> None:
        """Verify the segment that contains this offset again before it is read."""
        segments = self._local.segments
        segment = segments[index_of(segments, offset)]
        segment.unverified = ((0, segment.size),) if segment.size else ()

    def append_as_leader(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Append one batch that `validate_produced` has accepted.

        Writes the offset, the leader epoch and, with LogAppendTime, the time into `records`.
        ApiError leaves the log unchanged.
        """
        last_offset_delta, base_timestamp, max_timestamp, producer_id = header[6:10]
        append_time_ms = NO_APPEND_TIME
        with self._lock:
            if producer_id >= 0:
                duplicate = self._check_producer(header)
                if duplicate is not None:
                    return duplicate
            config = self.config
            if config.record_import == IMPORT_OPEN:
                raise only_imports(self.topic_partition)
            if config.log_append_time:
                set_append_time(records, 0, now_ms)
                header = header._replace(max_timestamp=now_ms)
                max_timestamp = append_time_ms = now_ms
            elif (
                max_timestamp > now_ms + config.message_timestamp_after_max_ms
                or NO_TIMESTAMP != base_timestamp < now_ms - config.message_timestamp_before_max_ms
            ):
                raise invalid_timestamp(header, config, now_ms)
            local = self._local
            base_offset = local.end[2]
            last_offset = base_offset + last_offset_delta
            _BEGINNING.pack_into(records, 0, base_offset, header[1], leader_epoch)
            try:
                local.write(records, last_offset, max_timestamp)
            except OSError as error:
                raise self._failed(error) from error
            if leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(leader_epoch, base_offset)
            if producer_id >= 0:
                self.producers.update(header, base_offset)
        return _new_tuple(Appended, (base_offset, last_offset, append_time_ms, False))

    def append_control(
        self, batch: bytearray, leader_epoch: int, *, transaction_version: int = 0
    ) -> Appended:
        """Append a control batch that the broker built, such as a transaction marker."""
        header = read_header(batch)
        marker = parse_marker(next(iterate_records(batch)))
        with self._lock:
            if marker is not None:
                self.producers.check_marker(
                    header.producer_id,
                    header.producer_epoch,
                    marker.coordinator_epoch,
                    transaction_version=transaction_version,
                )
            offset = self._local.end.offset
            last_offset = offset + header.last_offset_delta
            assign(batch, 0, offset, leader_epoch)
            with self._disk_errors():
                self._local.write(memoryview(batch), last_offset, header.max_timestamp)
            self._history.on_control(header, marker, leader_epoch, offset, self._local.active)
        return Appended(offset, last_offset, NO_APPEND_TIME, False)

    def append_as_follower(self, records: memoryview) -> Appended:
        """Append batches fetched from the leader, keeping their offsets and epochs.

        An incomplete last batch is skipped. CorruptBatch, or ApiError when the batches do not
        continue the log, leaves the log unchanged; after a disk error, the first ones may have been
        appended.
        """
        batches = list(iterate_headers(records))
        with self._lock:
            first_offset = self._local.end.offset
            validate_fetched(records, batches, self.topic_partition, first_offset)
            while batches:
                with self._disk_errors():
                    count = self._local.write_run(records, batches)
                self._history.on_fetched(records, batches[:count], self._local.active)
                batches = batches[count:]
            return Appended(first_offset, self._local.end.offset - 1, NO_APPEND_TIME, False)

    def _check_producer(self, header: BatchHeader) -> Appended | None:
        if header.base_sequence < 0:
            self.producers.check_epoch(header)
            return None
        found = self.producers.check(header)
        if found is None:
            return None
        append_time_ms = found.timestamp if self.config.log_append_time else NO_APPEND_TIME
        return Appended(found.first_offset, found.last_offset, append_time_ms, True)

    def read(
        self,
        offset: int,
        size_max: int,
        offset_limit: int,
        hint: ReadHint | None = None,
        *,
        cached_only: bool = False,
    ) -> LogSlice | None:
        """Read whole batches from the one that contains `offset`, all before `offset_limit`.

        Returns at least one batch even if it is larger than `size_max`; None if there is nothing to
        read yet. With the hint of the previous slice, a sequential reader needs no lookup. With
        `cached_only`, raises NotCached instead of waiting for the disk.
        """
        local = self._local
        end_offset = local.end[2]
        if not self.log_start_offset <= offset <= end_offset:
            raise self._out_of_range(offset)
        if offset >= offset_limit or offset == end_offset:
            return None
        generation = local.generation
        try:
            found = local.read(offset, size_max, offset_limit, hint, cached_only)
            if found is None or not found.hint.segment.removed:
                return found
            return self.read(offset, size_max, offset_limit, cached_only=cached_only)
        except (CorruptLog, OSError) as error:
            self._lookups.raise_unless_moved(error, generation)
            return self.read(offset, size_max, offset_limit, cached_only=cached_only)

    def offset_for_timestamp(self, timestamp_ms: int) -> FoundTimestamp | None:
        """The first record whose timestamp is at least this; may wait for the disk."""
        return self._lookups.timestamp(timestamp_ms, self.log_start_offset)

    def offset_of_max_timestamp(self) -> FoundTimestamp | None:
        """The first record with the largest timestamp; may wait for the disk."""
        return self._lookups.max_timestamp(self.log_start_offset)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Every transaction below this offset is decided."""
        with self._lock:
            unstable = self.producers.first_unstable_offset(high_watermark)
        return high_watermark if unstable is None else min(high_watermark, unstable)

    def aborted_transactions(self, first_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those with records from `first_offset` up to `end_offset`, exclusive."""
        return self._lookups.aborted(first_offset, end_offset)

    def roll(self) -> None:
        """Begin a new segment, unless the active one is empty."""
        with self._lock, self._disk_errors():
            self._local.roll()

    def flush(self) -> int:
        """Sync what was appended before this call; returns `flushed_offset`.

        Run it in a thread: appends continue and never wait for it. If a sync fails, the directory
        goes offline, because the state of the disk is then unknown.
        """
        self.log_directory.check_online()
        with self._lock:
            work = None if self._local.closed else self._local.begin_flush()
        if work is not None:
            with self._disk_errors(while_syncing=True):
                if self.identity_unsynced:
                    sync_partition_metadata(self.log_directory.filesystem, self.directory)
                    self.identity_unsynced = False
                self._local.sync(work)
                self.log_directory.sync_partitions()
                self.log_directory.check_in_place()
            with self._lock:
                self._local.end_flush(work)
        return self._local.flushed_offset

    def write_indexes(self) -> None:
        """Flushes first if rolled segments wait for a flush that no append will request."""
        if self._local.has_rolled:
            self.flush()
        with self._lock, self._disk_errors():
            self._local.show_indexes()

    def flush_leader_epochs(self) -> None:
        """Call before a recovery point is written: later epochs are recovered from the batches."""
        with self._disk_errors():
            if not self._local.closed:
                self.leader_epochs.flush(self._local.end.offset)

    def end_before(self, offset: int) -> int:
        """The end offset after `truncate_to(offset)`; the offset may be inside a batch."""
        with self._lock, self._disk_errors():
            if offset >= self._local.end.offset:
                return self._local.end.offset
            return self._local.end_before(offset).offset

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that reach to or past `offset`, and epochs that have no batch.

        Before the call, a recovery point no higher than `end_before(offset)` must be on disk: what
        is appended there later is not synced.
        """
        with self._lock, self._disk_errors():
            if offset >= self._local.end.offset:
                self.leader_epochs.truncate_from_end(self._local.end.offset)
                return
            if offset <= self.log_start_offset:
                self._start_anew(offset)
                return
            end_offset = self._local.truncate_to(offset)
            if end_offset < self.log_start_offset:
                self._start_anew(self.log_start_offset)
                return
            self.high_watermark = min(self.high_watermark, end_offset)
            self._history.on_end_moved(self._local.segments, self.log_start_offset, end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove everything; the next record gets `offset`."""
        with self._lock, self._disk_errors():
            self._start_anew(offset)

    def delete_records_before(self, offset: int) -> int:
        """Advance the log start offset and return it; removes the segments entirely before it."""
        with self._lock, self._disk_errors():
            if offset > self._local.end.offset:
                raise self._out_of_range(offset)
            if offset > self.log_start_offset:
                self._start_at(offset)
                self._remove_first(passed_count(self._local.segments, offset))
            return self.log_start_offset

    def delete_expired(self, now_ms: int) -> int:
        """Remove the segments that retention has expired; returns how many."""
        with self._lock, self._disk_errors():
            segments = self._local.segments
            count = expired_count(
                segments,
                self.config,
                log_start_offset=self.log_start_offset,
                high_watermark=self.high_watermark,
                end_offset=self._local.end.offset,
                now_ms=now_ms,
            )
            if count == len(segments):
                self._local.roll()
            self._remove_first(count)
            return count

    @property
    def truncations_count(self) -> int:
        """How often the end was truncated; a truncation in progress is waited for."""
        with self._lock:
            return self._local.truncations_count

    def replace_segments(
        self, old: Sequence[Segment], cleaned: CleanedSegment, truncations_count: int
    ) -> bool:
        """For compaction; see `LocalLog.replace`."""
        self.log_directory.check_online()
        with self._lock, self._disk_errors():
            return self._local.replace(old, cleaned, truncations_count)

    def expire_producers(self, now_ms: int) -> None:
        with self._lock:
            self.producers.expire(now_ms)

    def close(self) -> None:
        """After this and a clean shutdown marker, the log opens again without being read."""
        with self._lock, self._disk_errors():
            if self._local.end.offset > self.log_start_offset:
                self._local.active.seal()
                self.producers.take_snapshot(self._local.end.offset)
        self.flush()
        self.flush_leader_epochs()
        with self._disk_errors():
            self._local.close()

    def rename_for_deletion(self, directory: str) -> None:
        """Rename the log's directory; slices already read stay readable."""
        with self._lock, self._disk_errors():
            self._local.abandon()
            self.log_directory.filesystem.rename(self.directory, directory)
            self.log_directory.on_partitions_changed()
            self.directory = directory

    def rename(self, directory: str, *, instead_of: "PartitionLog | None" = None) -> None:
        """Continue in a renamed directory, perhaps that of another log, whose hints become void."""
        with self._lock, self._disk_errors():
            self.log_directory.filesystem.rename(self.directory, directory)
            self.log_directory.on_partitions_changed()
            self.directory = self.producers.directory = directory
            self.leader_epochs.path = f"{directory}/{LEADER_EPOCH_CHECKPOINT}"
            self._local.on_renamed(directory)
            if instead_of is not None:
                self._local.generation += instead_of._local.generation + 1

    def _start_anew(self, offset: int) -> None:
        self._local.start_anew(offset)
        self.log_start_offset = self.high_watermark = offset
        self._history.start_anew(offset)

    def _start_at(self, offset: int) -> None:
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self._history.on_start_moved(offset)

    def _remove_first(self, count: int) -> None:
        if count:
            self._local.remove_first(count)
            base_offset = self._local.segments[0].base_offset
            self.producers.remove_snapshots_before(base_offset)
            if base_offset > self.log_start_offset:
                self._start_at(base_offset)

    @contextmanager
    def _disk_errors(self, *, while_syncing: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._failed(error, while_syncing=while_syncing) from error

    def _failed(self, error: OSError, *, while_syncing: bool = False) -> Exception:
        if self._local.closed and isinstance(error, FileNotFoundError):
            return ApiError(
                ErrorCode.unknown_topic_or_partition, f"{self.topic_partition} was deleted"
            )
        return self.log_directory.on_error(error, while_syncing=while_syncing)

    def _out_of_range(self, offset: int) -> ApiError:
        return ApiError(
            ErrorCode.offset_out_of_range,
            f"offset {offset} of {self.topic_partition} is not in"
            f" {self.log_start_offset}..{self.log_end_offset}",
        )
