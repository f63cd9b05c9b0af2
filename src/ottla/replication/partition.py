"""A partition on this broker: its log, its role, and its high watermark.

    idle      no leader is known, or the leadership was lost; the initial state
    leader    accepts records, serves followers and consumers, advances the high watermark
    follower  copies the leader's log and high watermark; serves consumers nearby

The roles are `PartitionLeader` and `PartitionFollower`; this module has what they share: the log,
its readers, syncs, and listeners.

The high watermark is the offset below which everything is safe: on every in-sync replica and, with
`flush.policy = ack`, on their disks. Consumers read up to it and `acks=all` waits for it, so no
client sees or is promised a record that a failure could take back.

The event loop changes the log; threads read, sync and truncate it.
"""

import enum
from collections.abc import Callable
from typing import Protocol

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_fetch import EpochEndOffset
from ottla.protocol.topics import INTERNAL_TOPICS
from ottla.records.batch import BatchHeader
from ottla.replication.counters import TopicTraffic
from ottla.replication.followers import Followers
from ottla.replication.partition_follower import PartitionFollower
from ottla.replication.partition_leader import PartitionLeader
from ottla.replication.refused_writes import RefusedWrites
from ottla.replication.transaction_guards import TransactionGuards
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.reading import LogSlice, ReadHint

READ_HINTS_MAX = 64


class FlushPolicy(enum.Enum):
    """When an append is synced to disk."""

    ACK = "ack"  # Before it is acknowledged; one sync covers all waiting appends.
    INTERVAL = "interval"  # Every `flush.interval.ms`.
    OS = "os"  # Left to the operating system.


class LogFlusher(Protocol):
    def request(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        """Sync everything appended so far, then call back on the event loop."""


# Called with False on appends and leadership changes, with True on later commits.
AppendedListener = Callable[[bool], None]


class Partition:
    __slots__ = (
        "_appended_listeners",
        "_clean_at_ms",
        "_flush_policy",
        "_flush_requested",
        "_flusher",
        "_read_hints",
        "fetch_waiters",
        "follower",
        "is_being_truncated",
        "is_internal",
        "leader",
        "leader_epoch",
        "log",
        "refused_writes",
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
        # Invariant: at most one of the two is set.
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.is_being_truncated = False  # Invariant: the role stays while a thread truncates.
        self.leader_epoch = -1
        self._flush_policy = flush_policy
        self._flusher = flusher
        self._flush_requested = False
        self._clean_at_ms = 0.0
        # Both in order of arrival.
        self.fetch_waiters: dict[Callable[[], None], None] = {}
        self._appended_listeners: dict[AppendedListener, None] = {}
        self._read_hints: dict[int, ReadHint] = {}  # By the offset of the next read.
        self.transaction_guards = TransactionGuards()
        self.refused_writes = RefusedWrites()

    @property
    def is_leader(self) -> bool:
        return self.leader is not None

    @property
    def followers(self) -> Followers | None:
        """None unless this broker leads and there are other replicas."""
        leader = self.leader
        return None if leader is None else leader.followers

    def become_leader(
        self,
        leader_epoch: int,
        in_sync_replicas: tuple[int, ...],
        followers: Followers | None = None,
    ) -> None:
        """Start to lead, or continue in a new epoch or with another ISR."""
        self.follower = None
        leader = self.leader
        if leader is None:
            leader = self.leader = PartitionLeader(self)
        leader.in_sync_replicas = in_sync_replicas
        leader.followers = followers
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.leader_epochs.assign(leader_epoch, self.log.log_end_offset)
        leader.begin()

    def become_follower(self, leader_epoch: int) -> None:
        """Call `resign` first if it led: from here on the fetcher appends."""
        assert self.leader is None
        if self.follower is None or leader_epoch > self.leader_epoch:
            self.follower = PartitionFollower(self)
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            # If this broker led an epoch and wrote nothing, no other replica knows that epoch.
            self.log.leader_epochs.truncate_from_end(self.log.log_end_offset)
            self.wake_fetchers()

    def resign(self, error: ApiError) -> None:
        """Stop leading and fail the waiters, so that they go elsewhere."""
        leader, self.leader = self.leader, None
        self.follower = None
        if leader is not None:
            self._count_growth(leader)
            leader.end(error)
        self.transaction_guards.void_all()
        self.wake_fetchers()
        self.tell_appended_listeners()

    def take_log(self, log: PartitionLog) -> None:
        """Switch to another log with the same content, in another log directory."""
        leader = self.leader
        if leader is not None:
            self._count_growth(leader)
        self.log = log
        if leader is not None:
            leader.on_new_log()
        self._read_hints.clear()
        self._flush_requested = False  # A sync of the former log does not cover this one.
        if leader is not None or log.flushed_offset < log.log_end_offset:
            self.request_flush()

    def led_growth(self) -> tuple[int, int]:
        """The records and bytes appended since this broker leads; zero if it does not."""
        leader = self.leader
        return (0, 0) if leader is None else leader.growth()

    def _count_growth(self, leader: PartitionLeader) -> None:
        records, size = leader.growth()
        self.traffic.led_records += records
        self.traffic.led_bytes += size

    def on_started_anew(self) -> None:
        """The leader's log was emptied and begins elsewhere."""
        self._read_hints.clear()
        if self.leader is not None:
            self.leader.on_started_anew()

    def validate_leader_epoch(self, expected: int) -> None:
        """Check the epoch that a client expects; -1 means that it does not know."""
        if expected in (-1, self.leader_epoch):
            return
        if expected < self.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch)
        raise ApiError(ErrorCode.unknown_leader_epoch)

    def explain_refusal(self, header: BatchHeader, error: ApiError) -> tuple[ErrorCode, str]:
        """The error for the producer of a batch that was not appended."""
        if header.base_sequence < 0:
            return error.code, error.message
        entry = self.log.producers.get(header.producer_id)
        next_sequence = 0
        if entry is not None and entry.producer_epoch == header.producer_epoch:
            next_sequence = entry.next_sequence
        return self.refused_writes.explain(header, next_sequence, error)

    def read(
        self, offset: int, size_max: int, *, committed_only: bool, cached_only: bool = False
    ) -> LogSlice | None:
        """Whole batches from the one that contains `offset`; None if there is nothing new.

        May be called from a thread that waits for the disk; with `cached_only` it raises NotCached
        instead of waiting.
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
            if self.log is not log:  # It moved to another directory meanwhile.
                return self._read(offset, size_max, limit, cached_only=cached_only)
            if isinstance(error, ApiError):
                raise
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        if found is not None:
            self._remember(found)
        return found

    def divergence(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
        """Where a follower's log that ends like this diverges from this one; None if it does not.

        -1 stands for an unknown epoch, as in an empty log.
        """
        if last_fetched_epoch < 0:
            return None
        log = self.log
        found = log.leader_epochs.end_offset_for(last_fetched_epoch, log.log_end_offset)
        if found[0] < last_fetched_epoch or found[1] < offset:
            return EpochEndOffset(*found)
        return None

    def consumer_divergence(self, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
        """Like `divergence`; ApiError(offset_out_of_range) where it cannot be determined."""
        found = self.divergence(offset, last_fetched_epoch)
        if offset < self.log.log_start_offset or (found is not None and found.epoch < 0):
            raise ApiError(
                ErrorCode.offset_out_of_range,
                f"the log begins at {self.log.log_start_offset}; offset {offset} after a record of"
                f" epoch {last_fetched_epoch} is not in it",
            )
        return found

    def read_to_end(
        self, offset: int, size_max: int, *, cached_only: bool = False
    ) -> LogSlice | None:
        """Like `read`, for a follower: includes uncommitted records."""
        return self._read(offset, size_max, self.log.log_end_offset, cached_only=cached_only)

    def wait_for_data(self, waiter: Callable[[], None]) -> None:
        self.fetch_waiters[waiter] = None

    def stop_waiting(self, waiter: Callable[[], None]) -> None:
        self.fetch_waiters.pop(waiter, None)

    def listen_to_appends(self, listener: AppendedListener) -> None:
        """Call the listener, until it is removed, for everything that may interest a follower."""
        self._appended_listeners[listener] = None

    def forget_listener(self, listener: AppendedListener) -> None:
        self._appended_listeners.pop(listener, None)

    def _remember(self, found: LogSlice) -> None:
        hints = self._read_hints
        hints.pop(found.next_offset, None)
        if len(hints) >= READ_HINTS_MAX:
            try:
                hints.pop(next(iter(hints), -1), None)
            except RuntimeError:
                pass  # Another thread has just changed them; the next read drops one more.
        hints[found.next_offset] = found.hint

    def on_flush_failed(self, error: ApiError) -> None:
        self._flush_requested = False
        if self.leader is not None:
            self.leader.fail_appends(error)

    def maybe_flush(self, now_ms: float) -> None:
        """Sync data that has waited for `flush.ms`, to the precision of these calls."""
        log = self.log
        if log.flushed_offset == log.log_end_offset:
            self._clean_at_ms = now_ms
        elif now_ms - self._clean_at_ms >= log.config.flush_ms:
            self.request_flush()

    @property
    def synced_first(self) -> bool:
        """Whether an append must be on disk before it is acknowledged or visible."""
        return self._flush_policy is FlushPolicy.ACK or self.log.config.flush_messages == 1

    def request_flush(self) -> None:
        if not self._flush_requested:
            self._flush_requested = True
            self._flusher.request(self.log, self._on_flushed)

    def _on_flushed(self) -> None:
        self._flush_requested = False
        leader = self.leader
        if leader is None:
            return
        log = self.log
        # Read once, and first: a checkpoint may sync more in its thread while this runs, and the
        # waiters for that would not be notified.
        flushed_offset = log.flushed_offset
        leader.flushed_waiters.advance(flushed_offset)
        leader.advance_high_watermark()
        if self.synced_first and flushed_offset < log.log_end_offset:
            self.request_flush()

    def wake_fetchers(self) -> None:
        for waiter in tuple(self.fetch_waiters):
            waiter()

    def tell_appended_listeners(self, *, only_of_progress: bool = False) -> None:
        for listener in tuple(self._appended_listeners):
            listener(only_of_progress)
