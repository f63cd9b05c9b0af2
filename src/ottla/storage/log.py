"""The log of one partition.

Threads: appends, reads and changes of the log may come from any thread; a lock, held for
microseconds, orders those that change something. `flush` syncs outside the lock, so an append never
waits for the disk. `read` takes no lock: it works on values that are replaced as a whole.

Order of durability: a batch may be acknowledged after a flush that began later than its append. A
flush syncs the segments that were rolled since the last one, with their indexes and the producer
snapshots, then the active segment, the leader epochs and the directory, and then moves
`flushed_offset`. After a crash, what lies past the flushed offset that was last written down is
checked and indexed anew.
"""

import struct
import threading
import zlib
from typing import NamedTuple, Self
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import (
    NO_TIMESTAMP,
    BatchHeader,
    assign,
    iterate_headers,
    read_header,
    set_append_time,
    validate_checksum,
)
from ottla.records.decoder import iterate_records, parse_marker
from ottla.storage.config import LogConfig
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.log_directory import LogDirectory
from ottla.storage.producer_state import EXPIRATION_MS
from ottla.storage.reading import (
    FoundTimestamp,
    LogSlice,
    Place,
    ReadHint,
    find_max_timestamp,
    find_timestamp,
    place_of,
    segment_after,
)
from ottla.storage.recovery import LoadedLog, LoadRequest, load_log, note_aborted
from ottla.storage.segment import Segment

_BEGINNING = struct.Struct(">qii")  # Base offset, batch length, partition leader epoch.

NO_APPEND_TIME = -1


class Appended(NamedTuple):
    first_offset: int
    last_offset: int
    append_time_ms: int  # NO_APPEND_TIME when the records keep their producer's time.
    duplicate: bool  # The batch was there already; the offsets are those that it has.


class PartitionLog:
    __slots__ = (
        "_active",
        "_config",
        "_directory_unsynced",
        "_end",
        "_flushed",
        "_generation",
        "_limit",
        "_lock",
        "_rolled",
        "_segments",
        "directory",
        "flushed_offset",
        "high_watermark",
        "home",
        "leader_epochs",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "topic_id",
        "topic_partition",
    )

    def __init__(
        self,
        home: LogDirectory,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        """Made by `open`."""
        self.home = home
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.leader_epochs = loaded.leader_epochs
        self.producers = loaded.producers
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        # Replication moves it; retention and compaction remove nothing at or past it.
        # Invariant: log_start_offset <= high_watermark <= log_end_offset.
        self.high_watermark = loaded.log_start_offset
        self.flushed_offset = loaded.log_end_offset
        self._config = config
        self._lock = threading.Lock()
        self._generation = 0  # Counts the changes that move batches; hints from before are void.
        self._segments = loaded.segments
        self._active = loaded.segments[-1]
        self._rolled: tuple[Segment, ...] = ()  # Not synced since they were rolled.
        self._directory_unsynced = False
        self._end = Place(self._active, self._active.size, self.log_end_offset)
        self._flushed = self._end
        self._limit = (self.log_end_offset, self._end)  # The last limit of reads, and its place.
        self._set_roll_bounds(self._active)

    @classmethod
    def open(
        cls,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        filesystem: Filesystem,
        now_ms: int,
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean_shutdown: bool = False,
        producer_expiration_ms: int = EXPIRATION_MS,
        home: LogDirectory | None = None,
    ) -> Self:
        """Load the log that is in `directory`, or begin an empty one there.

        After a clean shutdown nothing is checked. Otherwise the batches from the segment of the
        recovery point on are: a tail that is damaged past the recovery point is cut off, damage
        before it raises CorruptLog.
        """
        home = home or LogDirectory(parent_of(directory), filesystem)
        request = LoadRequest(
            directory=directory,
            topic_partition=topic_partition,
            config=config,
            now_ms=now_ms,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean_shutdown=clean_shutdown,
            producer_expiration_ms=producer_expiration_ms,
        )
        loaded = load_log(home, request)
        return cls(home, directory, topic_partition, topic_id, config, loaded)

    def __repr__(self) -> str:
        return f"PartitionLog({self.directory}, {self.log_start_offset}..{self.log_end_offset})"

    @property
    def config(self) -> LogConfig:
        return self._config

    @config.setter
    def config(self, config: LogConfig) -> None:
        with self._lock:
            self._config = config
            self._set_roll_bounds(self._active)

    @property
    def size(self) -> int:
        """Bytes of all batches."""
        return sum(segment.size for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Oldest first; the last one is written to."""
        return self._segments

    def append_as_leader(
        self, records: memoryview, header: BatchHeader, leader_epoch: int, now_ms: int
    ) -> Appended:
        """Append one batch that `validate_produced` has accepted.

        The offset, the leader epoch and, with LogAppendTime, the time are written into `records`.
        ApiError leaves the log as it was.
        """
        last_offset_delta, base_timestamp, max_timestamp, producer_id = header[6:10]
        append_time_ms = NO_APPEND_TIME
        with self._lock:
            if producer_id >= 0:
                duplicate = self._check_producer(header)
                if duplicate is not None:
                    return duplicate
            config = self._config
            if config.log_append_time:
                set_append_time(records, 0, now_ms)
                header = header._replace(max_timestamp=now_ms)
                max_timestamp = append_time_ms = now_ms
            elif (
                max_timestamp > now_ms + config.message_timestamp_after_max_ms
                or NO_TIMESTAMP != base_timestamp < now_ms - config.message_timestamp_before_max_ms
            ):
                raise _invalid_timestamp(header, config, now_ms)
            base_offset = self.log_end_offset
            last_offset = base_offset + last_offset_delta
            _BEGINNING.pack_into(records, 0, base_offset, header[1], leader_epoch)
            self._write(records, base_offset, last_offset, max_timestamp, leader_epoch)
            if producer_id >= 0:
                self.producers.update(header, base_offset)
        return Appended(base_offset, last_offset, append_time_ms, False)

    def append_control(
        self, batch: bytearray, leader_epoch: int, *, transaction_version: int = 0
    ) -> Appended:
        """Append a control batch that the broker built, such as the end of a transaction."""
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
            offset = self.log_end_offset
            last_offset = offset + header.last_offset_delta
            assign(batch, 0, offset, leader_epoch)
            self._write(memoryview(batch), offset, last_offset, header.max_timestamp, leader_epoch)
            if marker is not None:
                completed = self.producers.update_marker(header, marker, offset)
                note_aborted(self._active, completed)
        return Appended(offset, last_offset, NO_APPEND_TIME, False)

    def append_as_follower(self, records: memoryview) -> Appended:
        """Append batches copied from the leader, with the offsets and epochs that they have.

        A last batch that is not all there is left out. CorruptBatch, or ApiError when the batches
        do not continue the log, leaves the log as it was.
        """
        batches = list(iterate_headers(records))
        first_offset = next_offset = self.log_end_offset
        for position, header in batches:
            validate_checksum(records, position, header)
            if header.base_offset < next_offset:
                raise ApiError(
                    ErrorCode.offset_out_of_range,
                    f"offset {header.base_offset} of {self.topic_partition} cannot be appended"
                    f" after {next_offset}",
                )
            next_offset = header.next_offset
        with self._lock:
            for position, header in batches:
                self._write(
                    records[position : position + header.size],
                    header.base_offset,
                    header.last_offset,
                    header.max_timestamp,
                    header.partition_leader_epoch,
                )
                completed = self.producers.replay(records, position, header)
                note_aborted(self._active, completed)
        return Appended(first_offset, self.log_end_offset - 1, NO_APPEND_TIME, False)

    def _check_producer(self, header: BatchHeader) -> Appended | None:
        if header.base_sequence < 0:
            self.producers.check_epoch(header)
            return None
        found = self.producers.check(header)
        if found is None:
            return None
        append_time_ms = found.timestamp if self._config.log_append_time else NO_APPEND_TIME
        return Appended(found.first_offset, found.last_offset, append_time_ms, True)

    def _write(
        self,
        batch: memoryview,
        base_offset: int,
        last_offset: int,
        max_timestamp: int,
        leader_epoch: int,
    ) -> None:
        home = self.home
        if home.failure is not None:
            raise home.failure
        segment = self._active
        size = len(batch)
        if (
            segment.size + size > segment.roll_size
            or max_timestamp > segment.roll_timestamp
            or last_offset > segment.roll_offset
        ):
            segment = self._roll_before(size)
        try:
            position = segment.append(
                batch, last_offset, max_timestamp, self._config.index_interval_bytes
            )
        except OSError as error:
            raise home.fail(error) from error
        if not position:
            self._on_first_batch(segment, max_timestamp)
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, base_offset)
        self.log_end_offset = next_offset = last_offset + 1
        self._end = Place(segment, position + size, next_offset)

    def read(
        self,
        offset: int,
        size_max: int,
        offset_limit: int,
        hint: ReadHint | None = None,
        *,
        cached_only: bool = False,
    ) -> LogSlice | None:
        """Whole batches from the one that has `offset` on, all before `offset_limit`.

        At least one batch even if it is larger than `size_max`; None when there is nothing to
        read yet. With the hint of the slice before, a sequential reader needs no lookup. With
        `cached_only`, NotCached is raised instead of waiting for the disk.
        """
        end = self._end
        if not self.log_start_offset <= offset <= end.offset:
            raise self._out_of_range(offset)
        if offset >= offset_limit or offset == end.offset:
            return None
        generation = self._generation
        stop = end
        if offset_limit < end.offset:
            stop = self._place_of_limit(offset_limit, cached_only=cached_only)
        if hint is not None and hint.offset == offset and hint.generation == generation:
            _, segment, position, first_offset = hint
            if segment is not stop.segment and position == segment.size:
                segment, position = segment_after(self._segments, segment), 0
        else:
            place = place_of(self._segments, offset, cached_only=cached_only)
            if place is None:
                return None
            segment, position, first_offset = place
        if segment is stop.segment:
            _, end_position, next_offset = stop
        else:
            end_position = segment.size
            next_offset = segment_after(self._segments, segment).base_offset
        if end_position - position > size_max:
            end_position, next_offset = segment.boundary_by(
                position, position + size_max, cached_only=cached_only
            )
        if end_position <= position:
            return None
        return LogSlice(
            segment.file(),
            position,
            end_position - position,
            first_offset,
            next_offset,
            ReadHint(generation, segment, end_position, next_offset),
        )

    def _place_of_limit(self, limit: int, *, cached_only: bool) -> Place:
        """Where the batches before `limit` end; limits move forward, mostly to what was flushed."""
        known, place = self._limit
        if known == limit:
            return place
        flushed = self._flushed
        if flushed.offset == limit:
            place = flushed
        else:
            place = place_of(self._segments, limit, cached_only=cached_only) or self._end
        self._limit = (limit, place)
        return place

    def offset_for_timestamp(self, timestamp_ms: int) -> FoundTimestamp | None:
        """The first record whose timestamp is not smaller; may wait for the disk."""
        return find_timestamp(self._segments, timestamp_ms, self.log_start_offset, self._end)

    def offset_of_max_timestamp(self) -> FoundTimestamp | None:
        return find_max_timestamp(self._segments, self.log_start_offset)

    def roll(self) -> None:
        """Begin a new segment, unless the active one is empty."""
        with self._lock:
            if self._active.size:
                self._roll()

    def flush(self) -> int:
        """Sync what was appended before this call and return the offset up to which that is.

        Runs beside appends of another thread, which never wait for it. A segment that is rolled
        meanwhile stays listed until a flush has synced it whole. If a sync fails, the directory
        goes offline: nobody knows what is on the disk.
        """
        self.home.check_online()
        with self._lock:
            end = self._end
            generation = self._generation
            rolled = self._rolled
            directory_unsynced = self._directory_unsynced
            self._directory_unsynced = False
        try:
            for segment in rolled:
                segment.sync()
                segment.flush_indexes()
            if end.segment.unsynced:
                end.segment.sync()
            self.leader_epochs.flush()
            if directory_unsynced:
                self.home.filesystem.sync_directory(self.directory)
        except OSError as error:
            raise self.home.fail(error) from error
        with self._lock:
            self._rolled = tuple(segment for segment in self._rolled if segment not in rolled)
            if generation == self._generation and end.offset > self.flushed_offset:
                self._flushed = end
                self.flushed_offset = end.offset
            return self.flushed_offset

    def close(self) -> None:
        """After an orderly stop, the log opens again without being read."""
        self._active.seal()
        self.flush()
        self._active.flush_indexes()
        if self.log_end_offset > self.log_start_offset:
            self.producers.take_snapshot(self.log_end_offset, sync=False)
        for segment in self._segments:
            segment.unload()

    def _roll_before(self, size: int) -> Segment:
        if size > self._config.segment_bytes:
            raise ApiError(
                ErrorCode.record_list_too_large,
                f"a batch of {size} bytes; segment.bytes is {self._config.segment_bytes}",
            )
        return self._roll() if self._active.size else self._active

    def _roll(self) -> Segment:
        old = self._active
        old.seal()
        self.producers.take_snapshot(self.log_end_offset, sync=False)
        segment = Segment(self.home, self.directory, self.log_end_offset)
        self._set_roll_bounds(segment)
        self._rolled = (*self._rolled, old)
        self._segments = (*self._segments, segment)
        self._active = segment
        self._end = Place(segment, 0, self.log_end_offset)
        return segment

    def _set_roll_bounds(self, segment: Segment) -> None:
        segment.index_bytes_max = self._config.segment_index_bytes
        segment.roll_size = self._config.segment_bytes
        if segment.size:
            self._on_first_batch(segment, segment.first_batch().max_timestamp)

    def _on_first_batch(self, segment: Segment, timestamp: int) -> None:
        """The age of a segment counts from its first batch, by the time of the records."""
        self._directory_unsynced = True
        if timestamp != NO_TIMESTAMP:
            config = self._config
            jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
            if jitter_ms:
                jitter_ms = zlib.crc32(segment.stem.encode()) % (jitter_ms + 1)
            segment.roll_timestamp = timestamp + config.segment_ms - jitter_ms

    def _out_of_range(self, offset: int) -> ApiError:
        return ApiError(
            ErrorCode.offset_out_of_range,
            f"offset {offset} of {self.topic_partition} is not in"
            f" {self.log_start_offset}..{self.log_end_offset}",
        )


def _invalid_timestamp(header: BatchHeader, config: LogConfig, now_ms: int) -> ApiError:
    return ApiError(
        ErrorCode.invalid_timestamp,
        f"timestamps {header.base_timestamp} to {header.max_timestamp} of the batch are not from"
        f" {config.message_timestamp_before_max_ms} ms before to"
        f" {config.message_timestamp_after_max_ms} ms after the broker's clock, {now_ms}",
    )
