"""Recovers a log after a crash.

The batches from the recovery point's segment on are read, checked and reindexed. Past the recovery
point a damaged batch is the torn end of the last write: it is truncated with everything after it,
unless the machine has not stopped and intact batches follow. Before the recovery point, synced data
is damaged: the damage is skipped and not served, or, if its end cannot be found, the whole log is
not served.

What is intact past the recovery point is rewritten, byte for byte, before it counts as synced. A
failed sync leaves pages in the cache that the disk does not have and that no later sync would
write, and neither the next process nor the system remembers it (docs/adr/0009).
"""

import logging
from collections.abc import Iterable, Sequence
from typing import NoReturn
from uuid import UUID

from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import BatchHeader, validate_checksum
from ottla.records.errors import CorruptBatch
from ottla.storage.config import LogConfig
from ottla.storage.damage import EPOCH_MAX, Damage, Examination
from ottla.storage.errors import CorruptLog
from ottla.storage.filesystem import Filesystem
from ottla.storage.found_batches import FoundBatch, intact_batches, note_aborted, replay_producers
from ottla.storage.index_file import CorruptIndex
from ottla.storage.leader_epochs import LeaderEpochCache
from ottla.storage.producer_state import EXPIRATION_MS, ProducerStateManager
from ottla.storage.reading import index_of
from ottla.storage.segment import Segment
from ottla.storage.sparse_index import RELATIVE_OFFSET_MAX

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LoadRequest:
    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    now_ms: int
    topic_id: UUID | None = None
    recovery_point: int = 0
    log_start_offset: int = 0
    clean_shutdown: bool = False
    producer_expiration_ms: int = EXPIRATION_MS
    checks_all: bool = False  # Also the segments before the recovery point's.
    pass_over_damage: bool = False  # Otherwise damage before the recovery point raises CorruptLog.
    # The machine has not stopped since: only the last write can be torn, synced or not.
    writes_survived: bool = False


class _FoundDamage(Exception):
    """A segment has damage that was not known before."""


class Recovery:
    def __init__(
        self,
        request: LoadRequest,
        segments: list[Segment],
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
    ) -> None:
        self.segments = segments
        self._request = request
        self._producers = producers
        self._epochs = epochs
        self._next_offset = 0  # Of the log, as far as it has been read.
        self._is_truncated = False
        self._epoch = -1  # The latest in the batches read.
        self._known_epoch = epochs.latest_epoch  # The latest one synced.
        self.may_lack_synced = False

    def run(self, log_start_offset: int) -> int:
        """Check what may not have been synced, truncate at damage; returns the log end offset."""
        while True:
            try:
                return self._run(log_start_offset)
            except _FoundDamage:
                pass  # Segments now know the damage. Start over, with the earlier producer state.

    def _run(self, log_start_offset: int) -> int:
        request = self._request
        first = self._first_to_check()
        start = self.segments[first].base_offset
        offset = self._producers.truncate_and_reload(log_start_offset, start, request.now_ms)
        replay_producers(self._producers, self.segments, offset, start)
        self._epochs.truncate_from_end(start)
        self._next_offset = start
        self._epoch = -1
        for index in range(first, len(self.segments)):
            if index > first:
                self._producers.take_snapshot(self.segments[index].base_offset)
            if not self._check(self.segments[index]):
                self._drop_after(index)
                break
        for segment in self.segments[first:-1]:
            segment.seal()
        for segment in self.segments[first:]:
            segment.on_verified(0, segment.size)
        # Reindexing empties the index files, and no flush writes those of closed segments.
        is_reindexed = first < len(self.segments) - 1
        if self._is_truncated or is_reindexed or self._next_offset > request.recovery_point:
            self._sync(self.segments[first:])
        return self._next_offset

    def _first_to_check(self) -> int:
        """The recovery point's segment, or the first one before it with invalid indexes."""
        if self._request.checks_all:
            return 0
        first = index_of(self.segments, self._request.recovery_point)
        for index in range(first):
            try:
                self._validate_indexes(self.segments[index])
            except CorruptIndex as error:
                logger.warning("rebuilding indexes: %s", error)
                return index
        return first

    def _validate_indexes(self, segment: Segment) -> None:
        segment.time_index.validate()
        segment.transaction_index.validate()
        if segment.size > unindexed_bytes_max(self._request.config):
            segment.offset_index.validate()

    def _check(self, segment: Segment) -> bool:
        """Index the intact batches of the segment; False if the rest was truncated."""
        if segment.base_offset < self._next_offset:
            self._truncate(segment, 0, f"the one before it reaches to offset {self._next_offset}")
            return False
        if segment.base_offset > self._next_offset and self._has_lost_end():
            self._truncate(segment, 0, f"the one before it ends at offset {self._next_offset}")
            return False
        self._next_offset = segment.base_offset
        segment.begin_indexing()  # Even if empty: truncating its indexes was not synced.
        if not segment.size:
            return True
        end, damage = 0, None
        rewriting = _Rewriting(segment)
        try:
            for batch in intact_batches(segment):
                self._pass_known_damage(segment, batch.position)
                self._validate(segment, batch)
                self._add(segment, batch)
                if batch.header.next_offset > self._request.recovery_point:
                    rewriting.add(batch)
                end = batch.position + batch.header.size
        except CorruptBatch as error:
            damage = str(error)
        rewriting.finish()
        if damage is not None:
            self._truncate(segment, end, damage)
        elif segment.damage:
            self._next_offset = max(self._next_offset, segment.damage[-1].next_offset)
        return damage is None

    def _has_lost_end(self) -> bool:
        """Whether a segment that ends too early has lost its end, at a batch boundary."""
        request = self._request
        return (
            self._next_offset >= request.recovery_point
            and not request.writes_survived
            and not request.config.compact
        )

    def _pass_known_damage(self, segment: Segment, position: int) -> None:
        """The offsets that the damage stood for are not a gap."""
        for damage in segment.damage:
            if damage.end == position:
                self._next_offset = max(self._next_offset, damage.next_offset)

    def _validate(self, segment: Segment, batch: FoundBatch) -> None:
        header = batch.header
        validate_checksum(batch.buffer, batch.buffer_position, header)
        if header.base_offset < self._next_offset:
            raise CorruptBatch(f"offset {header.base_offset} comes after {self._next_offset}")
        if not segment.base_offset <= header.last_offset < self._ceiling(segment):
            raise CorruptBatch(f"offset {header.last_offset} is not of this segment")
        if header.base_offset > self._next_offset and self._leaves_a_gap(header):
            raise CorruptBatch(f"offset {header.base_offset} comes after {self._next_offset}")
        epoch, latest = header.partition_leader_epoch, self._epoch
        if header.base_offset >= self._request.recovery_point:
            return
        is_last = segment is self.segments[-1] and batch.position + header.size == segment.size
        if -1 < epoch < latest or (is_last and epoch > self._epoch_max(header.base_offset)):
            raise CorruptBatch(f"leader epoch {epoch} comes after {latest}")

    def _ceiling(self, segment: Segment) -> int:
        """All offsets of the segment are below this."""
        following = next((s for s in self.segments if s.base_offset > segment.base_offset), None)
        if following is not None:
            return following.base_offset
        return segment.base_offset + RELATIVE_OFFSET_MAX + 1

    def _epoch_max(self, offset: int) -> int:
        """The upper bound for the epoch of the last batch, which no successor can check.

        The metadata's recovery point runs ahead of its epoch checkpoint (`checks_all`).
        """
        request = self._request
        if request.checks_all or offset >= request.recovery_point or self._known_epoch < 0:
            return EPOCH_MAX
        return max(self._known_epoch, self._epoch)

    def _leaves_a_gap(self, header: BatchHeader) -> bool:
        """Compaction leaves gaps; without it, a gap means that an offset was changed."""
        recovery_point = self._request.recovery_point
        if self._next_offset < recovery_point:
            return self._next_offset + header.last_offset_delta + 1 == recovery_point
        return not self._request.config.compact

    def _add(self, segment: Segment, batch: FoundBatch) -> None:
        header = batch.header
        segment.add_to_indexes(
            batch.position,
            header.size,
            header.last_offset,
            header.max_timestamp,
            self._request.config.index_interval_bytes,
        )
        self._epoch = max(self._epoch, header.partition_leader_epoch)
        if self._epoch not in (-1, self._epochs.latest_epoch):
            # A later entry is obsolete, or never was true: batches know better than the checkpoint.
            self._epochs.assign(self._epoch, header.base_offset)
        aborted = self._producers.replay(batch.buffer, batch.buffer_position, header)
        note_aborted(segment, aborted)
        self._next_offset = header.next_offset

    def _truncate(self, segment: Segment, position: int, reason: str) -> None:
        request = self._request
        if self._next_offset < request.recovery_point:
            self._pass_over(segment, position, reason)
        has_intact_after = self._has_intact_after(segment, position)
        if has_intact_after and request.writes_survived and request.pass_over_damage:
            self._pass_over(segment, position, reason)
        self.may_lack_synced |= has_intact_after
        logger.warning(
            "%s: truncated %d bytes that were never synced, at position %d, offset %d: %s",
            segment.path,
            segment.size - position,
            position,
            self._next_offset,
            reason,
        )
        self._is_truncated = True
        segment.size = position
        segment.unsynced = True
        segment.file().truncate(position)

    def _pass_over(self, segment: Segment, position: int, reason: str) -> NoReturn:
        """Mark the damaged part as not served; raises _FoundDamage or CorruptLog."""
        if not self._request.pass_over_damage:
            raise CorruptLog(segment.path, position, self._next_offset, reason)
        known, recovery_point = segment.damage, self._request.recovery_point
        is_last = not any(later.size for later in self._after(segment))
        found = [
            stretch
            for stretch in self._examine(segment, 0).damage
            if stretch.first_offset < recovery_point
            or (self._request.writes_survived and not (is_last and stretch.end == segment.size))
        ]
        if not any(
            stretch.position <= position <= stretch.end for stretch in found if stretch not in known
        ):
            found = [stretch for stretch in known if stretch.end <= position]
            found.append(
                Damage(
                    segment.path,
                    position,
                    segment.size,
                    self._next_offset,
                    self._ceiling(segment),
                    reason,
                )
            )
        if segment is self.segments[-1] and found[-1].end == segment.size:
            found[-1] = found[-1]._replace(next_offset=recovery_point)
        for damage in found:
            logger.error("%s; it is not served until it is repaired", damage)
        segment.damage = tuple(found)
        raise _FoundDamage

    def _examine(self, segment: Segment, position: int) -> Examination:
        floor = max(self._next_offset, segment.base_offset) if position else segment.base_offset
        examination = Examination(
            segment.file(),
            position,
            segment.size,
            floor=floor,
            ceiling=self._ceiling(segment),
            epoch_max=self._epoch_max(floor),
        )
        while not examination.is_done:
            examination.advance(segment.size)
        return examination

    def _has_intact_after(self, segment: Segment, position: int) -> bool:
        """Whether later writes are intact: then it is more than the torn end of the last write."""
        if any(later.size for later in self._after(segment)):
            return True
        damage = self._examine(segment, position).damage
        return bool(damage) and damage[0].end < segment.size

    def _after(self, segment: Segment) -> Sequence[Segment]:
        return self.segments[self.segments.index(segment) + 1 :]

    def _drop_after(self, index: int) -> None:
        for segment in reversed(self.segments[index + 1 :]):
            logger.warning("%s: dropped: the segment before it was truncated", segment.path)
            remove_all(segment.log_directory.filesystem, segment.mark_deleted())
        del self.segments[index + 1 :]
        truncated = self.segments[index]
        if not truncated.size and index and truncated.base_offset != self._next_offset:
            remove_all(truncated.log_directory.filesystem, truncated.mark_deleted())
            del self.segments[index]

    def _sync(self, segments: Iterable[Segment]) -> None:
        for segment in segments:
            if segment.on_disk:
                segment.sync()
                segment.flush_indexes()
        self._epochs.flush(self._next_offset)
        log_directory = self.segments[0].log_directory
        log_directory.filesystem.sync_directory(self._request.directory)


class _Rewriting:
    """Rewrites batches in place, those of one read together.

    It writes the bytes that were checked: the cache may drop them before another read.
    """

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._buffer = b""
        self._start = self._end = 0  # In the buffer.
        self._position = 0  # Of the start, in the file.

    def add(self, batch: FoundBatch) -> None:
        if batch.buffer is not self._buffer:
            self.finish()
            self._buffer, self._start = batch.buffer, batch.buffer_position
            self._position = batch.position
        self._end = batch.buffer_position + batch.header.size

    def finish(self) -> None:
        if self._buffer:
            data = memoryview(self._buffer)[self._start : self._end]
            self._segment.rewrite(data, self._position)


def unindexed_bytes_max(config: LogConfig) -> int:
    """A segment up to this size may lack an offset index or have an empty one."""
    return 2 * config.index_interval_bytes


def remove_all(filesystem: Filesystem, paths: Iterable[str]) -> None:
    for path in paths:
        filesystem.remove(path)
