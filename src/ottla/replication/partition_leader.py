"""The leader role of a partition: accepts records, serves followers, advances the high watermark.

The high watermark advances as far as the leader's own log and its in-sync followers allow. The role
lasts as long as this broker leads, across leader epochs if no other broker leads in between; its
waiters are notified when it ends.
"""

from typing import TYPE_CHECKING

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader, read_header
from ottla.replication.followers import FollowerFetch, Followers
from ottla.replication.waiters import OffsetWaiters, Waiter
from ottla.storage.appended import NO_APPEND_TIME, Appended
from ottla.storage.errors import StorageError
from ottla.storage.imported_batches import append_imported

if TYPE_CHECKING:
    from ottla.replication.partition import Partition

ACKS_ALL = -1


class PartitionLeader:
    __slots__ = (
        "_led_since",
        "committed_waiters",
        "deleted_waiters",
        "flushed_waiters",
        "followers",
        "in_sync_replicas",
        "partition",
        "sent_offsets",
    )

    def __init__(self, partition: "Partition") -> None:
        self.partition = partition
        self.in_sync_replicas: tuple[int, ...] = ()  # As committed by the controller.
        self.followers: Followers | None = None  # None if there are none.
        self.committed_waiters = OffsetWaiters()
        self.flushed_waiters = OffsetWaiters()
        self.deleted_waiters = OffsetWaiters()  # Waiting for the low watermark.
        self.sent_offsets: dict[int, int] = {}  # By follower: the first offset last sent to it.
        # The log end offset and appended bytes at the start.
        self._led_since = (partition.log.log_end_offset, partition.log.appended_bytes)

    # The role.

    def begin(self) -> None:
        """Lead in a new epoch or with a new ISR."""
        partition = self.partition
        flushed_offset = partition.log.flushed_offset
        self.advance_high_watermark()
        if flushed_offset < partition.log.log_end_offset:
            self._on_appended()  # Records copied as a follower may not be synced yet.
        partition.tell_appended_listeners()

    def end(self, error: ApiError) -> None:
        """Fail the waiters, so that they go elsewhere."""
        self.followers = None
        self.sent_offsets.clear()
        self.fail_appends(error)
        self.deleted_waiters.fail(error)

    def fail_appends(self, error: ApiError) -> None:
        self.committed_waiters.fail(error)
        self.flushed_waiters.fail(error)

    def growth(self) -> tuple[int, int]:
        """The records and bytes appended since this broker leads.

        Callable from any thread, which may see one of them a moment later than the other.
        """
        log, since = self.partition.log, self._led_since
        return log.log_end_offset - since[0], log.appended_bytes - since[1]

    def on_new_log(self) -> None:
        """The partition switched to another log: restart the counts."""
        log = self.partition.log
        self._led_since = (log.log_end_offset, log.appended_bytes)
        self.sent_offsets.clear()

    def on_started_anew(self) -> None:
        """The log was emptied and begins elsewhere."""
        partition = self.partition
        log = partition.log
        self._led_since = (log.log_end_offset, log.appended_bytes)
        log.leader_epochs.assign(partition.leader_epoch, log.log_end_offset)
        self.advance_high_watermark()
        self._on_appended()
        partition.tell_appended_listeners()

    # Appending.

    def validate_in_sync_replicas(self) -> None:
        """Require min.insync.replicas, but no more than there are replicas.

        Replicas that a reassignment adds do not count: writes continue while they copy the log.
        """
        required = self.partition.log.config.min_insync_replicas
        count = len(self.in_sync_replicas)
        if count < required:
            replicas_count = 1 if self.followers is None else self.followers.established_count
            if count < min(required, replicas_count):
                raise ApiError(
                    ErrorCode.not_enough_replicas,
                    f"{count} replicas are in sync; {required} are required",
                )

    def append(self, records: memoryview, header: BatchHeader, now_ms: int) -> Appended:
        partition = self.partition
        log = partition.log
        if log.log_directory.is_reserved:
            log.log_directory.check_room()
        try:
            appended = log.append_as_leader(records, header, partition.leader_epoch, now_ms)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        partition.traffic.batches_in += 1
        self._on_appended()
        return appended

    def append_control(self, batch: bytearray, *, transaction_version: int = 0) -> Appended:
        """Append a batch that ends a transaction here.

        No transaction writes here while records are imported, so then there is none to end.
        """
        partition = self.partition
        log = partition.log
        if log.config.takes_imports:
            return Appended(log.log_end_offset, log.log_end_offset - 1, NO_APPEND_TIME, False)
        log.log_directory.check_room()
        try:
            appended = log.append_control(
                batch, partition.leader_epoch, transaction_version=transaction_version
            )
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        if partition.transaction_guards:
            header = read_header(batch)
            partition.transaction_guards.on_marker(header.producer_id, header.producer_epoch)
        self._on_appended()
        return appended

    def append_imported(self, records: memoryview, next_offset: int) -> Appended:
        """Append batches of another cluster with their offsets, after `next_offset`.

        CorruptBatch and ApiError leave the log unchanged.
        """
        partition = self.partition
        log = partition.log
        log.log_directory.check_room()
        try:
            appended = append_imported(log, records, next_offset, partition.leader_epoch)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        self._on_appended()
        return appended

    def acknowledged(self, appended: Appended, acks: int) -> bool:
        """Whether a producer that requested `acks` may be answered now."""
        partition = self.partition
        if acks == ACKS_ALL:
            return appended.last_offset < partition.log.high_watermark
        return not partition.synced_first or appended.last_offset < partition.log.flushed_offset

    def wait_for_acknowledgement(self, appended: Appended, acks: int, waiter: Waiter) -> None:
        waiters = self.committed_waiters if acks == ACKS_ALL else self.flushed_waiters
        waiters.add(appended.last_offset + 1, waiter)

    def _on_appended(self) -> None:
        partition = self.partition
        if self.followers is not None:
            partition.tell_appended_listeners()
        if not partition.synced_first:
            self.advance_high_watermark()
            log = partition.log
            if log.log_end_offset - log.flushed_offset < log.config.flush_messages:
                return
        partition.request_flush()

    # Followers, and what they allow the leader to do.

    def on_asked(self, follower_id: int, offset: int) -> None:
        """A follower asks again for what it was sent: it may have been damaged or lost."""
        if self.sent_offsets.pop(follower_id, None) == offset:
            self.partition.log.distrust(offset)

    def on_follower_fetch(self, fetch: FollowerFetch, now_ms: float) -> bool:
        """The follower has everything before its offset; True if that makes the ISR grow."""
        followers = self.followers
        if followers is None:
            raise ApiError(ErrorCode.unknown_leader_epoch, "there are no followers here (yet)")
        log = self.partition.log
        changed = followers.on_fetch(fetch, log.log_end_offset, log.high_watermark, now_ms)
        self.on_followers_changed()
        return changed

    def on_followers_changed(self) -> None:
        """Re-evaluate everything that waits for followers."""
        self.advance_high_watermark()
        if self.deleted_waiters:
            self.deleted_waiters.advance(self.low_watermark)

    def advance_high_watermark(self) -> None:
        """As far as the leader's own log and its followers allow."""
        partition = self.partition
        log = partition.log
        safe = log.flushed_offset if partition.synced_first else log.log_end_offset
        followers = self.followers
        if followers is not None:
            safe = followers.committed_offset(safe, log.config.min_insync_replicas)
        if safe > log.high_watermark:
            log.high_watermark = safe
            if self.committed_waiters:
                self.committed_waiters.advance(safe)
            if partition.fetch_waiters:
                partition.wake_fetchers()
            if followers is not None:
                partition.tell_appended_listeners(only_of_progress=True)

    @property
    def is_behind_its_epoch(self) -> bool:
        """Whether records that others saw committed may be past a new leader's high watermark."""
        followers = self.followers
        return (
            followers is not None
            and self.partition.log.high_watermark < followers.epoch_start_offset
        )

    @property
    def low_watermark(self) -> int:
        """Everything before it is deleted on every live replica."""
        start = self.partition.log.log_start_offset
        return start if self.followers is None else self.followers.low_watermark(start)

    def on_deleted(self, offset: int, waiter: Waiter) -> None:
        """This log now starts at `offset`; call the waiter once the followers' logs do, too."""
        if self.low_watermark >= offset:
            waiter(None)
            return
        self.deleted_waiters.add(offset, waiter)
        self.partition.tell_appended_listeners(only_of_progress=True)
