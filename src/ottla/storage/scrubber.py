"""Reads closed segments in the background and reports damage.

Each log directory is scanned over and over, partition by partition in name order, a few megabytes
per second. The progress of a pass is saved periodically, so that a restart resumes there. Segments
that a reader found suspect come first, without a rate limit: they are not served until the damage
is known.

Damage is recorded in the segment (`Segment.damage`), and reads then avoid it. Wrong indexes are
rebuilt. Replication repairs what it can (see `replication.damaged_replicas`).
"""

import json
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from ottla.protocol.topics import TopicPartition
from ottla.storage.damage import Examination
from ottla.storage.errors import CorruptLog
from ottla.storage.index_audit import IndexAudit, rebuild_indexes, validate_transactions
from ottla.storage.index_file import CorruptIndex
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory, Suspect
from ottla.storage.producer_state import ProducerStateManager
from ottla.storage.reading import LogPosition
from ottla.storage.segment import Segment

logger = logging.getLogger(__name__)

STATE_FILE: Final = ".ottla_scrub"

_SEGMENT_BYTES_MIN: Final = 1 << 16  # What a small segment counts as: opening it has a cost, too.

OnDamage = Callable[[PartitionLog], object]


class _Next(NamedTuple):
    """The pass resumes at the first segment that does not come before this."""

    topic: str
    partition: int
    base_offset: int


_BEGINNING: Final = _Next("", -1, -1)


class _Work:
    """A segment being examined."""

    def __init__(self, log: PartitionLog, segment: Segment, end: LogPosition) -> None:
        """`end` is where the segment ends, with the offset that follows it."""
        self.log = log
        self.segment = segment
        self.truncations_count = log.truncations_count
        self.is_closed = segment is not log.segments[-1]
        self.audit = IndexAudit(segment) if self.is_closed else None
        self.examination = Examination(
            segment.file(),
            0,
            end.position,
            floor=segment.base_offset,
            ceiling=end.offset,
            on_intact=None if self.audit is None else self.audit.on_batch,
            epoch_max=log.leader_epochs.latest_epoch,
        )
        self.end_position = end.position

    def is_void(self) -> bool:
        """The segment has changed since this began."""
        return self.segment.removed or self.log.truncations_count != self.truncations_count


class DirectoryScrubber:
    """Not thread-safe."""

    def __init__(
        self,
        log_directory: LogDirectory,
        now_ms: Callable[[], int],
        interval_ms: int,
        on_damage: OnDamage,
    ) -> None:
        """`on_damage` is called, in this thread, for logs with newly found damage."""
        self._log_directory = log_directory
        self._now_ms = now_ms
        self._interval_ms = interval_ms
        self._on_damage = on_damage
        self._next: _Next | None = _BEGINNING  # None after the last segment of a pass.
        self._pass_began_ms = now_ms()
        self._work: _Work | None = None
        self._order: list[TopicPartition] = []  # Of this pass.
        self._written: bytes | None = None
        self.bytes_count = 0  # Read since the process started.

    def load(self) -> None:
        """Resume where the last process stopped; from the beginning if that is unknown."""
        path = f"{self._log_directory.path}/{STATE_FILE}"
        try:
            state = json.loads(self._log_directory.filesystem.read_bytes(path))
            following = state["next"]
            self._next = None if following is None else _Next(*following)
            self._pass_began_ms = min(int(state["passBeganMs"]), self._now_ms())
            suspects = [Suspect(TopicPartition(*row[:2]), row[2]) for row in state["suspects"]]
        except FileNotFoundError:
            return
        except (ValueError, TypeError, KeyError, IndexError) as error:
            logger.warning("cannot read %s; checking all segments: %s", path, error)
            self._next = _BEGINNING
            return
        self._log_directory.suspects.extend(suspects)

    def save(self, logs: Iterable[PartitionLog]) -> None:
        """Cheap if nothing has changed."""
        suspects = [
            [*log.topic_partition, segment.base_offset]
            for log in logs
            for segment in log.segments
            if segment.damage
        ]
        state = {"passBeganMs": self._pass_began_ms, "next": self._next, "suspects": suspects}
        data = json.dumps(state, separators=(",", ":")).encode()
        if data != self._written:
            self._log_directory.filesystem.write_atomically(
                f"{self._log_directory.path}/{STATE_FILE}", data
            )
            self._written = data

    def is_due(self, bytes_max: int) -> bool:
        """Whether a step would do anything."""
        if self._log_directory.failure is not None:
            return False
        is_in_pass = self._next is not None or self._work is not None
        is_reading = bytes_max > 0 and (is_in_pass or self._is_pass_due())
        return is_reading or bool(self._log_directory.suspects)

    def _is_pass_due(self) -> bool:
        return not 0 <= self._now_ms() - self._pass_began_ms < self._interval_ms

    def step(self, logs: Mapping[TopicPartition, PartitionLog], bytes_max: int) -> None:
        """Examine the suspect segments, then read this many bytes of what comes next."""
        self.examine_suspects(logs)
        left = bytes_max
        while left > 0:
            work = self._work or self._begin(logs)
            if work is None:
                return
            self._work = work
            left -= max(self._go_on(work, left), _SEGMENT_BYTES_MIN)

    def examine_suspects(self, logs: Mapping[TopicPartition, PartitionLog]) -> None:
        while self._log_directory.suspects:
            suspect = self._log_directory.suspects.popleft()
            log = logs.get(suspect.topic_partition)
            if log is None or log.log_directory is not self._log_directory:
                continue
            for end in log.ends():
                if end.segment.base_offset == suspect.base_offset and end.segment.size:
                    self._finish(_Work(log, end.segment, end))

    def _begin(self, logs: Mapping[TopicPartition, PartitionLog]) -> _Work | None:
        """The next segment of this pass, or of a new one if it is due; None if there is none."""
        if self._next is None:
            if not self._is_pass_due():
                return None
            self._next, self._pass_began_ms = _BEGINNING, self._now_ms()
            self._order = []
        if len(self._order) != len(logs):
            self._order = sorted(logs)
        for topic_partition in self._order[bisect_left(self._order, self._next[:2]) :]:
            log = logs.get(topic_partition)
            if log is None or log.log_directory is not self._log_directory:
                continue
            for end in log.ends()[:-1]:
                key = _Next(*topic_partition, end.segment.base_offset)
                if key >= self._next and end.segment.size:
                    self._next = key
                    return _Work(log, end.segment, end)
        self._next = None
        return None

    def _go_on(self, work: _Work, bytes_max: int) -> int:
        """Returns the number of bytes read."""
        if work.is_void():
            self._pass_by(work)
            return 0
        try:
            count = work.examination.advance(bytes_max)
        except (OSError, ValueError, CorruptLog):
            if not work.is_void():
                raise
            self._pass_by(work)
            return 0
        self.bytes_count += count
        if work.examination.is_done:
            self._pass_by(work)
            self._conclude(work)
        return count

    def _pass_by(self, work: _Work) -> None:
        key = work.log.topic_partition
        self._next = _Next(*key, work.segment.base_offset + 1)
        self._work = None

    def _finish(self, work: _Work) -> None:
        while not work.examination.is_done and not work.is_void():
            self.bytes_count += work.examination.advance(work.end_position)
        self._conclude(work)

    def _conclude(self, work: _Work) -> None:
        log, segment, damage = work.log, work.segment, tuple(work.examination.damage)
        if work.is_void():
            return
        known = segment.damage
        if damage != known:
            for stretch in damage:
                if stretch not in known:
                    logger.error("%s: %s; it is not served", log.topic_partition, stretch)
            if not log.note_damage(segment, damage, work.truncations_count):
                return
            self._on_damage(log)
        segment.on_verified(0, work.end_position)
        if not damage and work.audit is not None:
            self._check_indexes(work, work.audit)

    def _check_indexes(self, work: _Work, audit: IndexAudit) -> None:
        log, segment = work.log, work.segment
        reason = None if audit.is_sound else "entries do not lead to batches"
        try:
            validate_transactions(log.segments, segment)
        except CorruptIndex as error:
            reason = str(error)
        if reason is None:
            segment.are_transactions_verified = True
            return
        logger.error("%s: rebuilding wrong indexes: %s", segment.path, reason)
        producers = ProducerStateManager(
            log.topic_partition, log.directory, self._log_directory.filesystem, names=()
        )
        interval_bytes = log.config.index_interval_bytes
        rebuild_indexes(log.segments, segment, producers, log.log_start_offset, interval_bytes)
        segment.are_transactions_verified = True
