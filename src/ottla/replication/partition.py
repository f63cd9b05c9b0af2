"""One partition on this broker: its log, who leads it, and how far it is committed.

    idle      no leader is known, or the one that there was is lost; as made
    leader    takes records, serves followers and consumers, moves the high watermark
    follower  copies the leader's log, and its high watermark; serves consumers that are near

The high watermark is the offset below which everything is safe: on every in-sync replica and, with
`flush.policy = ack`, on their disks. Consumers read up to it and `acks=all` waits for it, so no one
sees or is promised a record that a failure could take back.

What changes the log comes from the event loop; threads read, sync and truncate it.
"""

import enum
from collections.abc import Callable
from typing import Protocol

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.topics import INTERNAL_TOPICS
from ottla.records.batch import BatchHeader, read_header
from ottla.replication.counters import TopicTraffic
from ottla.replication.followers import FollowerFetch, Followers
from ottla.replication.refused_writes import RefusedWrites
from ottla.replication.transaction_guards import TransactionGuards
from ottla.replication.waiters import OffsetWaiters, Waiter
from ottla.storage.appended import NO_APPEND_TIME, Appended
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.imported_batches import append_imported
from ottla.storage.log import PartitionLog
from ottla.storage.reading import LogSlice, ReadHint

ACKS_ALL = -1
READ_HINTS_MAX = 64


class FlushPolicy(enum.Enum):
    """When an append is synced to the disk."""

    ACK = "ack"  # Before it is acknowledged; one sync covers every append that waits.
    INTERVAL = "interval"  # Every `flush.interval.ms`.
    OS = "os"  # When the operating system likes.


class LogFlusher(Protocol):
    def request(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        """Sync everything appended so far, then call back on the event loop."""


# Hears of appends and changes of leadership (False) and of what is committed since (True).
AppendedListener = Callable[[bool], None]


class Partition:
    __slots__ = (
        "_appended_listeners",
        "_clean_at_ms",
        "_fetch_waiters",
        "_flush_policy",
        "_flush_requested",
        "_flusher",
        "_led_since",
        "_read_hints",
        "committed_waiters",
        "deleted_waiters",
        "flushed_waiters",
        "followers",
        "in_sync_replicas",
        "is_being_truncated",
        "is_internal",
        "is_leader",
        "leader_epoch",
        "log",
        "refused_writes",
        "sent_offsets",
        "traffic",
        "transaction_guards",
    )

    def __init__(
        self,
        log: PartitionLog,
        flush_policy: FlushPolicy,
        flusher: LogFlusher,
        traffic: TopicTraffic | None = None,
    ) -> None:
        self.log = log
        self.traffic = traffic or TopicTraffic()  # Shared by the partitions of a topic.
        self.is_internal = log.topic_partition.topic in INTERNAL_TOPICS
        self.is_leader = False
        self._led_since: tuple[int, int] | None = None  # An offset, and bytes that were appended.
        self.is_being_truncated = False  # Invariant: while a thread does it the role stays.
        self.leader_epoch = -1
        self.in_sync_replicas: tuple[int, ...] = ()  # What is committed; known to the leader.
        self.followers: Followers | None = None  # None unless this leads and there are some.
        self.committed_waiters = OffsetWaiters()
        self.flushed_waiters = OffsetWaiters()
        self.deleted_waiters = OffsetWaiters()  # For the low watermark.
        self._flush_policy = flush_policy
        self._flusher = flusher
        self._flush_requested = False
        self._clean_at_ms = 0.0
        # Both in the order of their coming.
        self._fetch_waiters: dict[Callable[[], None], None] = {}
        self._appended_listeners: dict[AppendedListener, None] = {}
        self._read_hints: dict[int, ReadHint] = {}  # By the offset of the next read.
        self.transaction_guards = TransactionGuards()
        self.refused_writes = RefusedWrites()
        self.sent_offsets: dict[int, int] = {}  # By follower: where the records began that it got.

    def become_leader(
        self,
        leader_epoch: int,
        in_sync_replicas: tuple[int, ...],
        followers: Followers | None = None,
    ) -> None:
        """Begin to lead, or lead on in a new epoch, or with another in-sync set."""
        if not self.is_leader:
            self._led_since = (self.log.log_end_offset, self.log.appended_bytes)
        self.is_leader = True
        self.in_sync_replicas = in_sync_replicas
        self.followers = followers
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.leader_epochs.assign(leader_epoch, self.log.log_end_offset)
        flushed_offset = self.log.flushed_offset
        self.advance_high_watermark()
        if flushed_offset < self.log.log_end_offset:
            self._on_appended()  # What was copied as a follower may not be synced yet.
        self._tell_appended_listeners()

    def become_follower(self, leader_epoch: int) -> None:
        """After `resign`, if it led: from here on the fetcher appends."""
        assert not self.is_leader
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            # An epoch in which this broker led and wrote nothing is known to nobody else.
            self.log.leader_epochs.truncate_from_end(self.log.log_end_offset)
            self._wake_fetchers()

    def resign(self, error: ApiError) -> None:
        """Stop leading: whoever waits here is sent elsewhere."""
        records, size = self.led_growth()
        self._led_since = None
        self.traffic.led_records += records
        self.traffic.led_bytes += size
        self.is_leader = False
        self.followers = None
        self.sent_offsets.clear()
        self.committed_waiters.fail(error)
        self.flushed_waiters.fail(error)
        self.deleted_waiters.fail(error)
        self.transaction_guards.void_all()
        self._wake_fetchers()
        self._tell_appended_listeners()

    def take_log(self, log: PartitionLog) -> None:
        """Go on with another log that has everything, in another log directory."""
        records, size = self.led_growth()
        self.traffic.led_records += records
        self.traffic.led_bytes += size
        self.log = log
        if self._led_since is not None:
            self._led_since = (log.log_end_offset, log.appended_bytes)
        self._read_hints.clear()
        self.sent_offsets.clear()
        self._flush_requested = False  # A sync of the former log says nothing of this one.
        if self.is_leader or log.flushed_offset < log.log_end_offset:
            self._request_flush()

    def led_growth(self) -> tuple[int, int]:
        """The records and bytes that were appended since this broker leads; none if it does not.

        From any thread, which may see one of them a moment later than the other.
        """
        since = self._led_since
        if since is None:
            return 0, 0
        log = self.log
        return log.log_end_offset - since[0], log.appended_bytes - since[1]

    def validate_leader_epoch(self, expected: int) -> None:
        """Compare with the epoch that a client believes in; -1 means that it does not know."""
        if expected in (-1, self.leader_epoch):
            return
        if expected < self.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch)
        raise ApiError(ErrorCode.unknown_leader_epoch)

    def validate_in_sync_replicas(self) -> None:
        """More than there are replicas cannot be asked for, whatever min.insync.replicas says.

        Those that a reassignment adds do not count: writes go on while they copy the log.
        """
        required = self.log.config.min_insync_replicas
        count = len(self.in_sync_replicas)
        if count < required:
            replicas_count = 1 if self.followers is None else self.followers.established_count
            if count < min(required, replicas_count):
                raise ApiError(
                    ErrorCode.not_enough_replicas,
                    f"{count} replicas are in sync; {required} are required",
                )

    def explain_refusal(self, header: BatchHeader, error: ApiError) -> tuple[ErrorCode, str]:
        """What to tell the producer of a batch that was not appended."""
        if header.base_sequence < 0:
            return error.code, error.message
        entry = self.log.producers.get(header.producer_id)
        next_sequence = 0
        if entry is not None and entry.producer_epoch == header.producer_epoch:
            next_sequence = entry.next_sequence
        return self.refused_writes.explain(header, next_sequence, error)

    def append(self, records: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        log = self.log
        if log.log_directory.is_reserved:
            log.log_directory.check_room()
        try:
            appended = log.append_as_leader(records, header, self.leader_epoch, now_ms)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        self.traffic.batches_in += 1
        self._on_appended()
        return appended

    def append_control(self, batch: bytearray, *, transaction_version: int = 0) -> Appended:
        """Append a batch that ends a transaction here.

        While records are imported no transaction has written here, so there is none to end.
        """
        log = self.log
        if log.config.takes_imports:
            return Appended(log.log_end_offset, log.log_end_offset - 1, NO_APPEND_TIME, False)
        log.log_directory.check_room()
        try:
            appended = self.log.append_control(
                batch, self.leader_epoch, transaction_version=transaction_version
            )
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        if self.transaction_guards:
            header = read_header(batch)
            self.transaction_guards.on_marker(header.producer_id, header.producer_epoch)
        self._on_appended()
        return appended

    def append_imported(self, records: memoryview, next_offset: int) -> Appended:
        """Append batches of another cluster with their offsets, behind `next_offset`.

        CorruptBatch and ApiError leave the log as it was.
        """
        self.log.log_directory.check_room()
        try:
            appended = append_imported(self.log, records, next_offset, self.leader_epoch)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        self._on_appended()
        return appended

    def on_started_anew(self) -> None:
        """The leader's log is empty, and begins elsewhere."""
        log = self.log
        self._read_hints.clear()
        self._led_since = (log.log_end_offset, log.appended_bytes)
        log.leader_epochs.assign(self.leader_epoch, log.log_end_offset)
        self.advance_high_watermark()
        self._on_appended()
        self._tell_appended_listeners()

    def append_fetched(self, records: memoryview) -> None:
        """Append what the leader of this follower has; the fetcher syncs it where that is asked.

        CorruptBatch and ApiError leave the log as it was.
        """
        self.log.log_directory.check_room()
        try:
            self.log.append_as_follower(records)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        self.traffic.replication_bytes_in += len(records)
        log = self.log
        if log.log_end_offset - log.flushed_offset >= log.config.flush_messages > 1:
            self._request_flush()

    def acknowledged(self, appended: Appended, acks: int) -> bool:
        """Whether a producer that asked for `acks` may be answered now."""
        if acks == ACKS_ALL:
            return appended.last_offset < self.log.high_watermark
        return not self.synced_first or appended.last_offset < self.log.flushed_offset

    def wait_for_acknowledgement(self, appended: Appended, acks: int, waiter: Waiter) -> None:
        waiters = self.committed_waiters if acks == ACKS_ALL else self.flushed_waiters
        waiters.add(appended.last_offset + 1, waiter)

    def read(
        self, offset: int, size_max: int, *, committed_only: bool, cached_only: bool = False
    ) -> LogSlice | None:
        """Whole batches from the one that holds `offset` on; None when there is nothing new.

        May be called from a thread that waits for the disk; with `cached_only` it does not wait
        but raises NotCached.
        """
        log = self.log
        limit = log.high_watermark
        if committed_only:
            limit = log.last_stable_offset(limit)
        if offset >= limit:
            if log.log_start_offset <= offset <= log.log_end_offset:
                return None
            raise ApiError(ErrorCode.offset_out_of_range)
        return self._read(offset, size_max, limit, cached_only=cached_only)

    def _read(
        self, offset: int, size_max: int, limit: int, *, cached_only: bool
    ) -> LogSlice | None:
        hint = self._read_hints.get(offset)
        log = self.log
        try:
            found = log.read(offset, size_max, limit, hint, cached_only=cached_only)
        except (ApiError, OSError, StorageError, CorruptLog) as error:
            if self.log is not log:  # It has moved to another directory meanwhile.
                return self._read(offset, size_max, limit, cached_only=cached_only)
            if isinstance(error, ApiError):
                raise
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        if found is not None:
            self._remember(found)
        return found

    def divergence(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
        """Where the log of a follower, that ends like this, leaves this one; None if it does not.

        -1 stands for an epoch that is not known, as in an empty log.
        """
        if last_fetched_epoch < 0:
            return None
        log = self.log
        found = log.leader_epochs.end_offset_for(last_fetched_epoch, log.log_end_offset)
        if found[0] < last_fetched_epoch or found[1] < offset:
            return EpochEndOffset(*found)
        return None

    def read_to_end(
        self, offset: int, size_max: int, *, cached_only: bool = False
    ) -> LogSlice | None:
        """As `read`, for a follower: committed or not."""
        return self._read(offset, size_max, self.log.log_end_offset, cached_only=cached_only)

    def wait_for_data(self, waiter: Callable[[], None]) -> None:
        self._fetch_waiters[waiter] = None

    def stop_waiting(self, waiter: Callable[[], None]) -> None:
        self._fetch_waiters.pop(waiter, None)

    def on_asked(self, follower_id: int, offset: int) -> None:
        """A follower asks again for what it got: perhaps it was damaged, or never arrived."""
        if self.sent_offsets.pop(follower_id, None) == offset:
            self.log.distrust(offset)

    def on_follower_fetch(self, fetch: FollowerFetch, now_ms: float) -> bool:
        """A follower has all before its offset; True when it makes the in-sync set grow."""
        followers = self.followers
        if followers is None:
            raise ApiError(ErrorCode.unknown_leader_epoch, "there are no followers here (yet)")
        log = self.log
        changed = followers.on_fetch(fetch, log.log_end_offset, log.high_watermark, now_ms)
        self.on_followers_changed()
        return changed

    def on_followers_changed(self) -> None:
        """The leader's: what waits for followers may be waiting no longer."""
        self.advance_high_watermark()
        if self.deleted_waiters:
            self.deleted_waiters.advance(self.low_watermark)

    @property
    def is_behind_its_epoch(self) -> bool:
        """A new leader's: what others saw committed may be past the high watermark that it has."""
        followers = self.followers
        return followers is not None and self.log.high_watermark < followers.epoch_start_offset

    @property
    def low_watermark(self) -> int:
        """The leader's: what is before it is deleted on every replica that is alive."""
        start = self.log.log_start_offset
        return start if self.followers is None else self.followers.low_watermark(start)

    def on_deleted(self, offset: int, waiter: Waiter) -> None:
        """This log starts at `offset` now; tell when those of the followers do as well."""
        if self.low_watermark >= offset:
            waiter(None)
            return
        self.deleted_waiters.add(offset, waiter)
        self._tell_appended_listeners(only_of_progress=True)

    def listen_to_appends(self, listener: AppendedListener) -> None:
        """Until it is told otherwise, it hears of all that a follower might want to know."""
        self._appended_listeners[listener] = None

    def forget_listener(self, listener: AppendedListener) -> None:
        self._appended_listeners.pop(listener, None)

    def _remember(self, found: LogSlice) -> None:
        hints = self._read_hints
        hints.pop(found.next_offset, None)
        if len(hints) >= READ_HINTS_MAX:
            hints.pop(next(iter(hints)), None)
        hints[found.next_offset] = found.hint

    def on_flush_failed(self, error: ApiError) -> None:
        self._flush_requested = False
        self.committed_waiters.fail(error)
        self.flushed_waiters.fail(error)

    def maybe_flush(self, now_ms: float) -> None:
        """Sync what has waited for `flush.ms`, as far as calls of this can tell."""
        log = self.log
        if log.flushed_offset == log.log_end_offset:
            self._clean_at_ms = now_ms
        elif now_ms - self._clean_at_ms >= log.config.flush_ms:
            self._request_flush()

    @property
    def synced_first(self) -> bool:
        """Whether an append must be on the disk before anyone is told or shown it."""
        return self._flush_policy is FlushPolicy.ACK or self.log.config.flush_messages == 1

    def _on_appended(self) -> None:
        if self.followers is not None:
            self._tell_appended_listeners()
        if not self.synced_first:
            self.advance_high_watermark()
            log = self.log
            if log.log_end_offset - log.flushed_offset < log.config.flush_messages:
                return
        self._request_flush()

    def _request_flush(self) -> None:
        if not self._flush_requested:
            self._flush_requested = True
            self._flusher.request(self.log, self._on_flushed)

    def _on_flushed(self) -> None:
        self._flush_requested = False
        if not self.is_leader:
            return
        log = self.log
        # Read once, and first: a checkpoint may sync more in its thread while this runs, of which
        # those who wait would not hear.
        flushed_offset = log.flushed_offset
        self.flushed_waiters.advance(flushed_offset)
        self.advance_high_watermark()
        if self.synced_first and flushed_offset < log.log_end_offset:
            self._request_flush()

    def advance_high_watermark(self) -> None:
        """The leader's: as far as its own log and its followers let it."""
        log = self.log
        safe = log.flushed_offset if self.synced_first else log.log_end_offset
        followers = self.followers
        if followers is not None:
            safe = followers.committed_offset(safe, log.config.min_insync_replicas)
        if safe > log.high_watermark:
            log.high_watermark = safe
            if self.committed_waiters:
                self.committed_waiters.advance(safe)
            if self._fetch_waiters:
                self._wake_fetchers()
            if followers is not None:
                self._tell_appended_listeners(only_of_progress=True)

    def follow_high_watermark(self, offset: int) -> None:
        """A follower's: as far as the leader says and its own log goes."""
        log = self.log
        offset = min(offset, log.log_end_offset)
        if offset > log.high_watermark:
            log.high_watermark = offset
            self._wake_fetchers()

    def follow_log_start(self, offset: int) -> None:
        """A follower's: what the leader has deleted is deleted here, too."""
        log = self.log
        if offset > log.log_start_offset:
            try:
                log.delete_records_before(min(offset, log.log_end_offset))
            except StorageError as error:
                raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error

    def _wake_fetchers(self) -> None:
        for waiter in tuple(self._fetch_waiters):
            waiter()

    def _tell_appended_listeners(self, *, only_of_progress: bool = False) -> None:
        for listener in tuple(self._appended_listeners):
            listener(only_of_progress)
