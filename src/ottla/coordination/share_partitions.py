"""The share-partitions of the partitions that this broker leads.

One is loaded from its share coordinator when a consumer first fetches it, and dropped when this
broker no longer leads the partition, when its state cannot be written, or when its offsets were
reset. Its users then get NOT_LEADER_OR_FOLLOWER, and the next fetch loads it again.
"""

import asyncio
import contextlib
import logging
from asyncio import AbstractEventLoop, Future, TimerHandle
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import field
from random import Random
from typing import Final

from kio.static.primitive import i8, i16, i64

from ottla.coordination.dead_letter_office import DeadLetterOffice
from ottla.coordination.share_counters import ShareCounters
from ottla.coordination.share_persister import SharePersister
from ottla.coordination.share_reading import key_numbers_at
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.acquisition import AcquiredRange, DeliveryRules, LogBatch
from ottla.groups.share.config import ShareConfig, reset_duration_ms
from ottla.groups.share.delivery import Acknowledgement, DeadLetter
from ottla.groups.share.lost_records import without_lost
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.partition import Change, SharePartition
from ottla.groups.share.rules import delivery_rules
from ottla.groups.share.state_coordinator import (
    NO_OFFSET,
    SharePartitionKey,
    ShareState,
    StateWrite,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.messages.delivery_acknowledge import Delivery, DeliveryAcknowledgeType
from ottla.replication.manager import LeadershipListener, ReplicaManager
from ottla.replication.partition import Partition
from ottla.runtime.clock import Clock
from ottla.storage.errors import StorageError

logger = logging.getLogger(__name__)

_CLOCK_SET_MS: Final = 1_000  # If the difference of two clocks changes by more, one was set.
_TIMER_MS_MAX: Final = 3_600_000  # Clocks can be set, and parked records are due by the wall clock.


class LedSharePartition:
    """Drives one share-partition: writes its changes, expires its locks, sends its dead letters."""

    def __init__(
        self,
        key: SharePartitionKey,
        partition: Partition,
        *,
        persisted: ShareState,
        parked: Sequence[ParkedChange],
        start_offset: int,
        writer: int,
        owner: "SharePartitions",
    ) -> None:
        """`start_offset` is the persisted one, or where a new group begins.

        `writer` is the number with which the persisted state was read.
        """
        self.key = key
        self.partition = partition
        self._owner = owner
        self._state_epoch = persisted.state_epoch
        self._leader_epoch = partition.leader_epoch
        self._writer = writer
        self._writes_count = 0
        rules = self._rules(owner.config(key.group_id))
        remaining = without_lost(
            start_offset, persisted.batches, parked, partition.log.log_end_offset
        )
        self.state = SharePartition(start_offset, remaining.batches, rules, remaining.parked)
        self._counters = owner.counters.setdefault(key.group_id, ShareCounters())
        self._waiters: dict[Callable[[], None], None] = {}  # In order of arrival.
        self._timer: TimerHandle | None = None
        self._timer_ms = 0  # When it fires.
        self._wall_ahead_ms = owner.wall_ahead_ms()
        self._learning = asyncio.Lock()
        self._dropped = False
        is_new = persisted.start_offset == NO_OFFSET
        self._apply(Change(start_offset) if is_new else remaining.change)
        if self.state.archiving():
            self._send()
        self._schedule()

    def _rules(self, config: ShareConfig) -> DeliveryRules:
        return delivery_rules(config, self.partition.log.topic_partition.topic)

    # For consumers.

    def refresh(self, config: ShareConfig) -> None:
        """Apply the group's configuration, and what retention has removed."""
        self._validate()
        self.state.rules = self._rules(config)
        self._apply(self._drop_deleted())

    def _drop_deleted(self) -> Change:
        return self.state.on_log_start(self.partition.log.log_start_offset)

    async def on_records_deleted(self) -> None:
        """Returns once it is durable that the group is done with the deleted records."""
        if not self._dropped:
            await self._until_written(self._drop_deleted())

    async def know_keys(self, executor: Executor) -> None:
        """If key order matters, learn the keys of the records delivered before this leader began.

        Until the high watermark has reached the last of them, nothing can be acquired.
        """
        if not self.state.needs_keys:
            return
        async with self._learning:
            while self.state.needs_keys:
                offsets, end_offset = self.state.unfinished_offsets(), self.state.end_offset
                if offsets and offsets[-1] >= self.partition.log.high_watermark:
                    return
                keys = await self._owner.loop.run_in_executor(
                    executor, key_numbers_at, self.partition, offsets
                )
                self._validate()
                if self.state.needs_keys and self.state.end_offset == end_offset:
                    self.state.learn_keys(keys)

    def fetch_offset(self) -> int | None:
        self._validate()
        return self.state.fetch_offset()

    def due_offsets(self, count: int) -> list[int]:
        """Parked records that can be acquired, sorted."""
        self._validate()
        return self.state.due_offsets(count, self._now_ms())

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        batches: Sequence[LogBatch],
        *,
        records_max: int,
        batch_size: int | None,
        hold_ms: int = 0,
    ) -> tuple[tuple[AcquiredRange, ...], "Future[None]"]:
        """The acquired ranges, and a future that is done when they are durable.

        Callers need not wait for delivery counts, since locks exist only here. They must wait for
        holds.
        """
        self._validate()
        acquired, change = self.state.acquire(
            member_id,
            fetch_offset,
            batches,
            records_max=records_max,
            batch_size=batch_size,
            now_ms=self._now_ms(),
            hold_ms=hold_ms,
        )
        self._counters.on_acquired(acquired)
        return acquired, self._apply(change)

    def acquire_parked(
        self,
        member_id: str,
        found: Iterable[tuple[int, bool]],
        *,
        records_max: int,
        hold_ms: int,
    ) -> tuple[tuple[AcquiredRange, ...], "Future[None]"]:
        """Like `acquire`; `found` has offsets, and whether the log has records there."""
        self._validate()
        acquired, change = self.state.acquire_parked(
            member_id,
            found,
            records_max=records_max,
            now_ms=self._now_ms(),
            hold_ms=hold_ms,
        )
        self._counters.on_acquired(acquired)
        return acquired, self._apply(change)

    async def acknowledge_deliveries(self, deliveries: Sequence[Delivery]) -> list[ApiError | None]:
        """The refusals, in the same order. Returns once the rest is durable."""
        self._validate()
        refused, change = self._settle(deliveries)
        await self._until_written(change)
        return refused

    def _settle(self, deliveries: Sequence[Delivery]) -> tuple[list[ApiError | None], Change]:
        end_offset = self.partition.log.high_watermark
        return self.state.acknowledge_deliveries(deliveries, self._now_ms(), end_offset)

    async def _until_written(self, change: Change) -> None:
        written = self._apply(change)
        self._wake()
        try:
            await written
        except ApiError as error:
            raise _fetch_error(error) from error
        finally:
            del written  # It may hold an exception whose traceback references this frame.

    async def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement]
    ) -> None:
        """Returns once it is durable."""
        self._validate()
        await self._until_written(
            self.state.acknowledge(member_id, acknowledgements, self._now_ms())
        )

    def put_back(self, holder: str, acquired: Iterable[AcquiredRange]) -> None:
        """The holder never received the records: undo the delivery."""
        try:
            self._validate()
            deliveries = [
                Delivery(
                    first_offset=i64(first),
                    last_offset=i64(last),
                    holder=holder,
                    delivery_count=i16(count),
                    type=i8(DeliveryAcknowledgeType.PUT_BACK),
                )
                for first, last, count in acquired
            ]
            _, change = self._settle(deliveries)
            self._apply(change)
        except ApiError:
            return  # Dropped: holds expire on their own.
        self._wake()

    def release(self, member_id: str) -> None:
        if not self._dropped:
            self._apply(self.state.release_member(member_id, self._now_ms()))
            self._wake()

    def wait(self, waiter: Callable[[], None]) -> None:
        """Call `waiter` when there may be something to acquire, or when this is dropped."""
        self._waiters[waiter] = None
        self.partition.wait_for_data(waiter)

    def stop_waiting(self, waiter: Callable[[], None]) -> None:
        self._waiters.pop(waiter, None)
        self.partition.stop_waiting(waiter)

    def drop(self) -> None:
        self._dropped = True
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    def _validate(self) -> None:
        if self._dropped:
            raise _dropped()

    # Changes.

    def _apply(self, change: Change) -> "Future[None]":
        self._schedule()
        if change.dead_letters:
            self._send()
        if change.lost_count:
            logger.warning(
                "%d records of %s that were held or waited for share group %s are no longer in the"
                " log: they are dropped",
                change.lost_count,
                self.partition.log.topic_partition,
                self.key.group_id,
            )
        if not change.is_written:
            done: Future[None] = self._owner.loop.create_future()
            done.set_result(None)
            return done
        write = StateWrite(
            self._state_epoch,
            self._leader_epoch,
            change.start_offset,
            change.batches,
            self.state.delivery_complete_count,
            change.parked,
            self._writer,
            self._writes_count,
        )
        self._writes_count += 1
        try:
            written = self._owner.persister.write(self.key, write)
        except ApiError as error:
            self._on_unwritten(error)
            raise _dropped() from error
        written.add_done_callback(self._on_written)
        return written

    def _on_written(self, written: "Future[None]") -> None:
        if not written.cancelled() and (error := written.exception()) is not None:
            self._on_unwritten(error)

    def _on_unwritten(self, error: BaseException) -> None:
        if not self._dropped:
            logger.warning("the state of %s was not written: %s", self.key.coordinator_key, error)
            self._owner.drop(self.key)

    def _now_ms(self) -> int:
        """By the wall clock, which persisted times follow; locks are adjusted when it is set."""
        now_ms = self._owner.clock.now_ms()
        set_by_ms = self._owner.wall_ahead_ms() - self._wall_ahead_ms
        if abs(set_by_ms) > _CLOCK_SET_MS:
            self._wall_ahead_ms += set_by_ms
            self._timer_ms += round(set_by_ms)
            self.state.on_clock_set(round(set_by_ms))
        return now_ms

    def _wake(self) -> None:
        for waiter in tuple(self._waiters):
            waiter()

    # Locks.

    def _schedule(self) -> None:
        """One timer for the earliest deadline; it is rearmed if it fires too early."""
        now_ms = self._now_ms()
        timeout_ms = self.state.next_timeout_ms(now_ms)
        if timeout_ms is None or self._dropped:
            return
        if self._timer is not None:
            if self._timer_ms <= timeout_ms:
                return
            self._timer.cancel()
        delay_ms = min(max(0, timeout_ms - now_ms), _TIMER_MS_MAX)
        self._timer_ms = now_ms + delay_ms
        self._timer = self._owner.loop.call_later(delay_ms / 1000, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if not self._dropped:
            try:
                self._apply(self.state.expire(self._now_ms()))
            except ApiError:
                return  # Dropped.
            self._wake()

    # Dead letters.

    def _send(self) -> None:
        self._owner.office.notice(self)

    @property
    def waits_for_dead_letters(self) -> bool:
        """Whether delivery stops until some are written."""
        return not self._dropped and self.state.waits_for_dead_letters

    def dead_letters(self) -> Sequence[DeadLetter]:
        """Sorted by offset; empty if this was dropped, because the next leader sends them."""
        return () if self._dropped else self.state.archiving()

    def on_dead_letters_written(self, letters: Sequence[DeadLetter]) -> None:
        if self._dropped:
            return  # They will be written again.
        self._counters.dead_letters += sum(each.records_count for each in letters)
        try:
            self._apply(self.state.on_dead_letters_written(letters))
        except ApiError:
            return  # Dropped.
        self._wake()


def _reset_offset(partition: Partition, config: ShareConfig, now_ms: int) -> int:
    """Where a group that has never read the partition begins. May wait for the disk."""
    log = partition.log
    if config.auto_offset_reset == "earliest":
        return log.log_start_offset
    duration_ms = reset_duration_ms(config.auto_offset_reset)
    found = None if duration_ms is None else log.offset_for_timestamp(now_ms - duration_ms)
    return log.high_watermark if found is None else min(found.offset, log.high_watermark)


@dataclass(slots=True, kw_only=True, eq=False)
class SharePartitions:
    replicas: ReplicaManager
    persister: SharePersister
    office: DeadLetterOffice
    config: Callable[[str], ShareConfig]  # A group's effective configuration.
    clock: Clock
    random: Random
    loop: AbstractEventLoop
    # Of the groups with share-partitions here.
    counters: dict[str, ShareCounters] = field(init=False, default_factory=dict)
    _led: dict[SharePartitionKey, LedSharePartition] = field(init=False, default_factory=dict)
    _loading: dict[SharePartitionKey, Future[LedSharePartition]] = field(
        init=False, default_factory=dict
    )

    def wall_ahead_ms(self) -> float:
        """How far the wall clock is ahead of the monotonic clock."""
        return self.clock.now_ms() - self.clock.monotonic_ms()

    @property
    def leadership_listener(self) -> LeadershipListener:
        return LeadershipListener(lambda _: None, self._on_resigning)

    async def find(self, group_id: str, topic_partition: TopicIdPartition) -> LedSharePartition:
        """ApiError if this broker does not lead it or its state is unavailable."""
        partition = self.replicas.find(topic_partition.topic_id, topic_partition.partition)
        key = SharePartitionKey(group_id, topic_partition.topic_id, topic_partition.partition)
        led = self._led.get(key)
        if led is not None:
            return led
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.ensure_future(self._load(key, partition))
            loading.add_done_callback(lambda _: self._loading.pop(key, None))
        return await asyncio.shield(loading)

    async def on_records_deleted(self, partition: Partition) -> None:
        """Make the groups here skip them, locked or not; the next fetch retries what is lost."""
        leds = [led for led in self._led.values() if led.partition is partition]
        with contextlib.suppress(ApiError):
            await asyncio.gather(*(led.on_records_deleted() for led in leds))

    def led(self) -> Iterable[LedSharePartition]:
        """For inspection only."""
        return self._led.values()

    def release(self, group_id: str, member_id: str) -> None:
        """The member left."""
        for led in [led for key, led in self._led.items() if key.group_id == group_id]:
            try:
                led.release(member_id)
            except ApiError:
                continue  # Dropped, and its locks with it.

    def drop(self, key: SharePartitionKey) -> None:
        led = self._led.pop(key, None)
        if led is not None:
            led.drop()
            if not any(other.group_id == key.group_id for other in self._led):
                self.counters.pop(key.group_id, None)

    async def _load(self, key: SharePartitionKey, partition: Partition) -> LedSharePartition:
        try:
            leader_epoch = partition.leader_epoch
            writer = self.random.randrange(1, 1 << 63)
            persisted = await self.persister.read(key, leader_epoch, writer)
            parked: Sequence[ParkedChange] = ()
            if persisted.parked_count:
                parked = await self.persister.read_parked(key, leader_epoch)
        except ApiError as error:
            raise _fetch_error(error) from error
        start_offset = persisted.start_offset
        if start_offset == NO_OFFSET:
            start_offset = await self._first_offset(key, partition)
        if not partition.is_leader or partition.leader_epoch != leader_epoch:
            raise ApiError(ErrorCode.not_leader_or_follower)
        led = self._led[key] = LedSharePartition(
            key,
            partition,
            persisted=persisted,
            parked=parked,
            start_offset=start_offset,
            writer=writer,
            owner=self,
        )
        return led

    async def _first_offset(self, key: SharePartitionKey, partition: Partition) -> int:
        config, now_ms = self.config(key.group_id), self.clock.now_ms()
        try:
            return await self.loop.run_in_executor(None, _reset_offset, partition, config, now_ms)
        except (OSError, StorageError) as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error

    def _on_resigning(self, partition: Partition) -> None:
        for key in [key for key, led in self._led.items() if led.partition is partition]:
            self.drop(key)


def _dropped() -> ApiError:
    return ApiError(ErrorCode.not_leader_or_follower, "the share-partition is being reloaded")


def _fetch_error(error: ApiError) -> ApiError:
    """As a consumer understands it: it looks up the leader and retries."""
    if error.code in {ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_request}:
        return ApiError(ErrorCode.unknown_topic_or_partition, error.message)
    return ApiError(ErrorCode.not_leader_or_follower, error.message)
