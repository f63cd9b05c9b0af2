"""A share-partition: which records of a partition a share group has in flight, and with whom.

It lives on the partition's leader. The states of a record and their transitions are in `delivery`.
The offsets from `start_offset` to `end_offset` are the window, in flight. What lies before is done,
and what lies after was never delivered, except for the contents of `parking_lot`: records that are
held for long or wait until they are due would fill the window.

An operation changes the state at once and returns a Change: what must be persisted (by the share
coordinator) before a consumer is answered, and the resulting dead letters. If that write fails, the
share-partition is dropped and rebuilt from the persisted state. Time is passed in.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.groups.share.acknowledgements import (
    TypedRange,
    not_acquired,
    typed_ranges,
    validate_acquired,
    validated_type,
)
from ottla.groups.share.acquisition import AcquiredRange, Acquisition, DeliveryRules, LogBatch
from ottla.groups.share.delivery import (
    Acknowledgement,
    AcknowledgeType,
    DeadLetter,
    DeadLetterReason,
    DeliveryState,
    StateBatch,
)
from ottla.groups.share.key_order import KeyOrder
from ottla.groups.share.offset_runs import Run, Runs
from ottla.groups.share.parked import NO_CHANGE, ParkedChange
from ottla.groups.share.parked_acquisition import ParkedAcquisition
from ottla.groups.share.parking_lot import ParkingLot
from ottla.groups.share.settling import InLot, InWindow, Settling
from ottla.groups.share.state_batches import combined
from ottla.protocol.errors import ApiError
from ottla.protocol.messages.delivery_acknowledge import Delivery, DeliveryAcknowledgeType


class Change(NamedTuple):
    start_offset: int
    batches: tuple[StateBatch, ...] = ()  # What has changed from the start offset on.
    dead_letters: tuple[DeadLetter, ...] = ()
    is_written: bool = True  # False if there is nothing to persist.
    parked: ParkedChange = NO_CHANGE
    lost_count: int = 0  # Parked records no longer in the log.


class SharePartition:
    def __init__(
        self,
        start_offset: int,
        batches: Iterable[StateBatch],
        rules: DeliveryRules,
        parked: Iterable[ParkedChange] = (),
    ) -> None:
        """`batches` is the persisted state of the records from the start offset on."""
        self._rules = rules
        self._lot = ParkingLot(parked)
        self._runs = Runs(start_offset)
        for batch in sorted(batches):
            self._load(batch)
        self._runs.drop_final()

    def _load(self, batch: StateBatch) -> None:
        """Offsets before it without persisted state were delivered at most once."""
        runs = self._runs
        first = max(batch.first_offset, runs.end_offset)
        if first > batch.last_offset:
            return
        if first > runs.end_offset:
            runs.append(Run(runs.end_offset, first - 1, DeliveryState.AVAILABLE))
        runs.append(Run.loaded(first, batch))

    # State.

    @property
    def rules(self) -> DeliveryRules:
        return self._rules

    @rules.setter
    def rules(self, rules: DeliveryRules) -> None:
        self._rules = rules
        if self._lot.order is not None and not rules.key_order:
            self._lot.set_order(None)

    @property
    def needs_keys(self) -> bool:
        """Whether nothing can be acquired before `learn_keys`."""
        return self._rules.key_order and self._lot.order is None

    def unfinished_offsets(self) -> list[int]:
        """Records that may be delivered again, sorted."""
        return sorted([*self._runs.unfinished(), *self._lot.unfinished()])

    def learn_keys(self, keys: Mapping[int, int]) -> None:
        """`keys` has the key numbers of unfinished records with a key."""
        known = ((each, keys[each]) for each in self.unfinished_offsets() if each in keys)
        self._lot.set_order(KeyOrder(known))

    @property
    def start_offset(self) -> int:
        return self._runs.start_offset

    @property
    def end_offset(self) -> int:
        """Nothing from here on was ever delivered."""
        return self._runs.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """Finished records behind unfinished ones (KIP-1226)."""
        return sum(run.count for run in self._runs if run.state.is_final)

    def runs(self) -> Iterator[Run]:
        return iter(self._runs)

    def fetch_offset(self) -> int | None:
        """Where to read what can be acquired next; None if too much is in flight already."""
        for run in self._runs:
            if run.state is DeliveryState.AVAILABLE:
                return run.first_offset
        if len(self._lot) >= self.rules.parked_max:
            return None
        return self.end_offset if self.rules.room(self._runs) > 0 else None

    @property
    def parked_count(self) -> int:
        return len(self._lot)

    @property
    def acquired_count(self) -> int:
        """Records held by consumers."""
        return self._count(DeliveryState.ACQUIRED) + self._lot.taken_count

    @property
    def available_count(self) -> int:
        """Records in the window that can be acquired at once."""
        return self._count(DeliveryState.AVAILABLE)

    @property
    def waiting_count(self) -> int:
        """Parked records that no consumer has."""
        return self._lot.waiting_count

    @property
    def archiving_count(self) -> int:
        """Dead letters not written yet."""
        return self._count(DeliveryState.ARCHIVING) + self._lot.archiving_count

    def _count(self, state: DeliveryState) -> int:
        return sum(run.count for run in self._runs if run.state is state)

    def due_offsets(self, count: int, now_ms: int) -> list[int]:
        """Up to `count` parked records that can be acquired, sorted."""
        if not self._lot.waiting or self.needs_keys:
            return []
        room = self.rules.record_locks_max - self._lot.locked_count
        return sorted(self._lot.waiting.due(now_ms, min(count, room))) if room > 0 else []

    @property
    def waits_for_dead_letters(self) -> bool:
        """Nothing can be delivered, now or later, before some dead letters are written."""
        runs = self._runs
        return runs.span > 0 and runs.left_behind == runs.span and self.rules.room(runs) <= 0

    def next_timeout_ms(self, now_ms: int) -> int | None:
        """When the first lock ends, or a parked record becomes due."""
        times = [run.lock_until_ms for run in self._runs if run.state is DeliveryState.ACQUIRED]
        if self._lot and (parked_ms := self._lot.next_timeout_ms(now_ms)) is not None:
            times.append(parked_ms)
        return min(times, default=None)

    def archiving(self) -> tuple[DeadLetter, ...]:
        """The dead letters not yet known to be written, sorted."""
        letters = [
            DeadLetter(run.first_offset, run.last_offset, run.delivery_count, self._reason(run))
            for run in self._runs
            if run.state is DeliveryState.ARCHIVING
        ]
        letters.extend(self._lot.archiving(self.rules.delivery_count_limit))
        return tuple(sorted(letters, key=lambda letter: letter.first_offset))

    def _reason(self, run: Run) -> DeadLetterReason:
        if run.reason is not None:
            return run.reason
        if run.delivery_count >= self.rules.delivery_count_limit:
            return DeadLetterReason.DELIVERY_COUNT
        return DeadLetterReason.REJECTED

    # Acquiring.

    def acquire(
        self,
        member_id: str,
        fetch_offset: int,
        batches: Sequence[LogBatch],
        *,
        records_max: int,
        batch_size: int | None,
        now_ms: int,
        hold_ms: int = 0,
    ) -> tuple[tuple[AcquiredRange, ...], Change]:
        """Give the member what is available in `batches`, which were read from `fetch_offset` on.

        With `batch_size`, whole batches are given even if the last one exceeds `records_max`, in
        ranges of about `batch_size` records; without it, at most `records_max`, even if that splits
        a batch. With `hold_ms` the member holds what it gets. With key order it gets one record of
        each key, from batches whose keys were examined.
        """
        acquisition = Acquisition(self._runs, self._lot, self.rules, member_id, batch_size, now_ms)
        offset = max(fetch_offset, self.start_offset)
        for batch in batches:
            if batch.last_offset < offset:
                continue
            if acquisition.count >= records_max or acquisition.stopped:
                break
            acquisition.pass_over(offset, batch.first_offset - 1)
            first = max(offset, batch.first_offset)
            if not batch.deliverable:
                acquisition.pass_over(first, batch.last_offset)
            elif not self._rules.key_order:
                acquisition.take_batch(batch, first, None if batch_size else records_max)
            elif self._lot.order is None or batch.keys is None:
                break
            else:
                acquisition.take_in_order(batch, first, records_max, self._lot.order)
            offset = batch.last_offset + 1
        settling = Settling(self.rules, now_ms)
        for run in acquisition.finish():
            settling.give_up(self._in_window(run))
        if hold_ms:
            self._hold(acquisition.acquired, settling, member_id, hold_ms)
        touched = (acquisition.first_offset, acquisition.last_offset)
        change = self._changed([touched] if touched[0] <= touched[1] else (), settling)
        return tuple(acquisition.acquired), change

    def _hold(
        self,
        acquired: Iterable[AcquiredRange],
        settling: Settling,
        member_id: str,
        hold_ms: int,
    ) -> None:
        for first, last, _ in acquired:
            for run in self._runs.split_out(first, last):
                settling.hold(self._in_window(run), member_id, hold_ms)

    def acquire_parked(
        self,
        member_id: str,
        found: Iterable[tuple[int, bool]],
        *,
        records_max: int,
        now_ms: int,
        hold_ms: int = 0,
    ) -> tuple[tuple[AcquiredRange, ...], Change]:
        """Give the member parked records; `found` has ascending offsets, and whether they exist."""
        settling = Settling(self.rules, now_ms)
        acquisition = ParkedAcquisition(self._lot, self.rules, settling, now_ms)
        if not self.needs_keys:
            acquisition.take(found, member_id, records_max, hold_ms)
        change = self._changed((), settling)
        return tuple(acquisition.acquired), change._replace(lost_count=acquisition.lost_count)

    # Ending deliveries.

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Change:
        """All or nothing; what lies before the start offset is done and skipped."""
        ranges = typed_ranges(acknowledgements)
        parked: list[tuple[int, AcknowledgeType]] = []
        if self._lot:
            ranges = self._without_parked(member_id, ranges, parked)
        ranges = [found for found in ranges if found.last_offset >= self.start_offset]
        validate_acquired(self._runs, member_id, ranges, acknowledgements)
        settling = Settling(self.rules, now_ms)
        for offset, kind in parked:
            self._acknowledge_parked(offset, kind, settling, now_ms)
        for first, last, kind in ranges:
            for run in self._runs.split_out(first, last):
                self._acknowledge(run, kind, settling, now_ms)
        if all(found.kind is AcknowledgeType.RENEW for found in ranges):
            if ranges:
                self._runs.join(ranges[0].first_offset, ranges[-1].last_offset)
            return self._changed((), settling)
        return self._changed([(ranges[0].first_offset, ranges[-1].last_offset)], settling)

    def _without_parked(
        self,
        member_id: str,
        ranges: Sequence[TypedRange],
        parked: list[tuple[int, AcknowledgeType]],
    ) -> list[TypedRange]:
        """Move the member's parked records into `parked`; returns the other ranges."""
        rest: list[TypedRange] = []
        for first, last, kind in ranges:
            for offset in self._lot.taken_between(first, last):
                taken = self._lot.taken(offset)
                is_done = (
                    parked
                    and parked[-1][0] == offset
                    and parked[-1][1] is not AcknowledgeType.RENEW
                )
                if is_done or taken is None or taken.holder != member_id:
                    raise not_acquired(offset, member_id)
                parked.append((offset, kind))
                if offset > first:
                    rest.append(TypedRange(first, offset - 1, kind))
                first = offset + 1
            if first <= last:
                rest.append(TypedRange(first, last, kind))
        for first, last, _ in rest:
            if first < self.start_offset and self._lot.waits_between(first, last):
                raise not_acquired(first, member_id)
        return rest

    def _acknowledge(
        self, run: Run, kind: AcknowledgeType, settling: Settling, now_ms: int
    ) -> None:
        if kind is AcknowledgeType.RENEW:
            run.lock_until_ms = now_ms + self.rules.lock_duration_ms
        else:
            settling.acknowledge(self._in_window(run), kind)

    def _acknowledge_parked(
        self, offset: int, kind: AcknowledgeType, settling: Settling, now_ms: int
    ) -> None:
        taken = self._lot.taken(offset)
        assert taken is not None
        if kind is AcknowledgeType.RENEW:
            until_ms = now_ms + self.rules.lock_duration_ms
            due_ms = until_ms if taken.is_hold else taken.due_ms
            self._lot.take(offset, taken._replace(lock_until_ms=until_ms, due_ms=due_ms))
        else:
            settling.acknowledge(InLot(offset, taken.delivery_count, self._lot), kind)

    def acknowledge_deliveries(
        self, deliveries: Iterable[Delivery], now_ms: int, log_end_offset: int
    ) -> tuple[list[ApiError | None], Change]:
        """The refusals, in order, and the combined change of the others.

        Each delivery is applied completely or not at all, whoever reports it: it names its holder,
        who has the records with that delivery count, or had them last and no one has had them
        since.
        """
        start_offset = self.start_offset
        settling = Settling(self.rules, now_ms)
        refused: list[ApiError | None] = []
        ranges: list[tuple[int, int]] = []
        for delivery in deliveries:
            try:
                kind = validated_type(delivery, log_end_offset)
                ranges += self._settle(delivery, kind, settling)
                refused.append(None)
            except ApiError as error:
                refused.append(error.with_traceback(None))
        change = self._changed(ranges, settling)
        return refused, change._replace(
            batches=combined(change.batches),  # A range can be settled twice.
            is_written=change.is_written or self.start_offset != start_offset,
        )

    def _settle(
        self, delivery: Delivery, kind: DeliveryAcknowledgeType, settling: Settling
    ) -> list[tuple[int, int]]:
        """The ranges of the window that it changes."""
        if kind is DeliveryAcknowledgeType.SKIP:
            self._drop_before(delivery.last_offset + 1)
            return []
        parked, ranges = self._find_delivery(delivery)
        for offset in parked:
            settling.settle(InLot(offset, delivery.delivery_count, self._lot), kind, delivery)
        for first, last in ranges:
            for run in self._runs.split_out(first, last):
                settling.settle(self._in_window(run), kind, delivery)
        return ranges

    def _find_delivery(self, delivery: Delivery) -> tuple[list[int], list[tuple[int, int]]]:
        """Its offsets in the parking lot, and its ranges in the window."""
        holder, count = delivery.holder, delivery.delivery_count
        parked: list[int] = []
        ranges: list[tuple[int, int]] = []
        offset: int = delivery.first_offset
        while offset <= delivery.last_offset:
            if self._lot.has_delivery(offset, holder, count):
                parked.append(offset)
                offset += 1
                continue
            run = self._delivered_run(offset, holder, count)
            if run is None:
                raise not_acquired(offset, holder)
            last = min(run.last_offset, delivery.last_offset)
            ranges.append((offset, last))
            offset = last + 1
        return parked, ranges

    def _delivered_run(self, offset: int, holder: str, count: int) -> Run | None:
        if not self.start_offset <= offset < self.end_offset:
            return None
        (run,) = self._runs.overlapping(offset, offset)
        held = run.state is DeliveryState.ACQUIRED and run.member_id == holder
        free = run.state is DeliveryState.AVAILABLE
        return run if (held or free) and run.delivery_count == count else None

    def release_member(self, member_id: str, now_ms: int) -> Change:
        """The member is gone: release what it has, except what it holds."""
        parked = self._lot.locked_by(member_id)
        return self._release_where(lambda run: run.member_id == member_id, parked, now_ms)

    def expire(self, now_ms: int) -> Change:
        """Release records with expired locks."""
        parked = self._lot.expired(now_ms)
        return self._release_where(lambda run: run.lock_until_ms <= now_ms, parked, now_ms)

    def on_clock_set(self, milliseconds: int) -> None:
        """The clock jumped by this much: locks keep their remaining time."""
        self._runs.shift_locks(milliseconds)
        self._lot.shift_locks(milliseconds)

    def _release_where(
        self, matches: Callable[[Run], bool], parked: Iterable[int], now_ms: int
    ) -> Change:
        found = [run for run in self._runs if run.state is DeliveryState.ACQUIRED and matches(run)]
        touched = [(run.first_offset, run.last_offset) for run in found]
        settling = Settling(self.rules, now_ms)
        for run in found:
            settling.release(self._in_window(run))
        for offset in parked:
            taken = self._lot.taken(offset)
            assert taken is not None
            settling.release(InLot(offset, taken.delivery_count, self._lot))
        return self._changed(touched, settling)

    def _in_window(self, run: Run) -> InWindow:
        return InWindow(run, self._runs, self._lot)

    # External events.

    def on_dead_letters_written(self, letters: Sequence[DeadLetter]) -> Change:
        touched = [(letter.first_offset, letter.last_offset) for letter in letters]
        for first, last in touched:
            self._lot.finish_archiving(first, last)
            for run in self._runs.split_out(first, last):
                if run.state is DeliveryState.ARCHIVING:
                    run.leave_to(DeliveryState.ARCHIVED)
        return self._changed(touched)

    def on_log_start(self, log_start_offset: int) -> Change:
        """Retention or DeleteRecords removed the records before this offset."""
        start_offset = self.start_offset
        lost_count = self._drop_before(log_start_offset)
        change = self._changed(())
        return change._replace(
            lost_count=lost_count,
            is_written=change.is_written or self.start_offset != start_offset,
        )

    def _drop_before(self, offset: int) -> int:
        """Returns how many parked records were dropped."""
        self._runs.drop_before(offset)
        return self._lot.finish_before(offset)

    # Changes.

    def _changed(
        self, ranges: Sequence[tuple[int, int]], settling: Settling | None = None
    ) -> Change:
        """The changes in the window and the parking lot."""
        for first, last in ranges:
            self._runs.join(first, last)
        self._runs.drop_final()
        parked = self._lot.changes()
        if not ranges and parked is NO_CHANGE:
            return Change(self.start_offset, is_written=False)
        batches = tuple(batch for first, last in ranges for batch in self._written(first, last))
        letters = () if settling is None else tuple(settling.dead_letters)
        return Change(self.start_offset, batches, letters, parked=parked)

    def _written(self, first_offset: int, last_offset: int) -> Iterator[StateBatch]:
        first_offset = max(first_offset, self.start_offset)
        if first_offset > last_offset:
            return
        for run in self._runs.overlapping(first_offset, last_offset):
            yield StateBatch(
                max(run.first_offset, first_offset),
                min(run.last_offset, last_offset),
                run.state.written,
                run.delivery_count,
            )
