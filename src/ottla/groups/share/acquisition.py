"""What a member acquires from the batches of a fetch."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.groups.share.delivery import DeliveryState
from ottla.groups.share.delivery_throttle import DeliveryThrottle
from ottla.groups.share.key_order import KeyOrder
from ottla.groups.share.offset_runs import Run, Runs
from ottla.groups.share.parking_lot import ParkingLot
from ottla.protocol.entities import entity

THROTTLED_MIN: Final = 2


@entity
class DeliveryRules:
    """The group's configuration; it may be replaced at any time."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    record_locks_max: int = 2_000  # In flight at a time; a batch may exceed it.
    dead_letters: bool = False  # For records past the limit.
    dead_letters_of_rejected: bool = False
    left_behind_max: int = 10_000  # Records that wait only for dead letters, besides the locks.
    backoff_ms: int = 0  # After the first failed delivery; 0 for none.
    backoff_multiplier: float = 2.0
    backoff_max_ms: int = 900_000
    parked_max: int = 1_000_000  # Records outside the window: held, or waiting until they are due.
    key_order: bool = False  # Records with the same key are delivered one at a time.

    @property
    def throttled_from(self) -> int:
        """Records with this delivery count are delivered fewer at a time."""
        return max(THROTTLED_MIN, (self.delivery_count_limit + 1) // 2)

    def room(self, runs: Runs) -> int:
        """How many more records may be delivered for the first time."""
        ignored = min(runs.left_behind, self.left_behind_max) + runs.parked_count
        return self.record_locks_max + ignored - runs.span

    def backoff_after(self, delivery_count: int) -> int:
        """How long a record with this delivery count waits for its redelivery."""
        if not self.backoff_ms:
            return 0
        try:
            grown = self.backoff_ms * self.backoff_multiplier ** max(0, delivery_count - 1)
        except OverflowError:
            return self.backoff_max_ms
        return int(min(grown, self.backoff_max_ms))


class LogBatch(NamedTuple):
    """A batch of the log, as found by a fetch."""

    first_offset: int
    last_offset: int
    deliverable: bool = True  # False for control records and aborted transactions.
    delayed: tuple[tuple[int, int], ...] = ()  # Offsets and delivery times of delayed records.
    keys: Mapping[int, int] | None = None  # Key numbers by offset; None if not examined.

    def pieces(self, first_offset: int, now_ms: int) -> Iterator[tuple[int, int, int | None]]:
        """Ranges from `first_offset`, each with its delivery time, or None if it is due."""
        for offset, due_ms in self.delayed:
            if offset >= first_offset and due_ms > now_ms:
                if offset > first_offset:
                    yield first_offset, offset - 1, None
                yield offset, offset, due_ms
                first_offset = offset + 1
        if first_offset <= self.last_offset:
            yield first_offset, self.last_offset, None


class AcquiredRange(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int

    @property
    def record_count(self) -> int:
        return self.last_offset - self.first_offset + 1


class Acquisition:
    def __init__(
        self,
        runs: Runs,
        lot: ParkingLot,
        rules: DeliveryRules,
        member_id: str,
        batch_size: int | None,
        now_ms: int,
    ) -> None:
        self.acquired: list[AcquiredRange] = []
        self.count = 0  # Of acquired records.
        self.stopped = False  # Part of the last batch was left: nothing after it may be taken.
        self.first_offset = runs.end_offset  # The range touched; empty while it lies after last.
        self.last_offset = -1
        self._runs = runs
        self._lot = lot
        self._rules = rules
        self._member_id = member_id
        self._batch_size = batch_size  # A range with this many records ends with its batch.
        self._now_ms = now_ms
        self._lock_until_ms = now_ms + rules.lock_duration_ms
        self._spent: list[Run] = []
        self._throttle = DeliveryThrottle(runs, rules)

    def finish(self) -> list[Run]:
        """Available runs that must not be delivered again: they have reached the limit."""
        self._note_origins()
        return self._spent

    def take_batch(self, batch: LogBatch, first: int, records_max: int | None) -> None:
        """Take a batch from `first` on, except what is not due yet."""
        for low, high, due_ms in batch.pieces(first, self._now_ms):
            left = None if records_max is None else records_max - self.count
            if left == 0:
                self.stopped = True
            if self.stopped:
                return
            if due_ms is None or not self.park(low, due_ms):
                self.take(low, high, left)

    def take_in_order(self, batch: LogBatch, first: int, records_max: int, order: KeyOrder) -> None:
        """Like `take_batch`, per record; those behind another one of their key are parked."""
        runs, lot = self._runs, self._lot
        assert batch.keys is not None
        dues_ms = dict(batch.delayed)
        runs.drop_final()
        room = self._rules.room(runs)
        for offset in range(max(first, runs.start_offset), batch.last_offset + 1):
            is_new = offset == runs.end_offset
            if self.count >= records_max or (
                is_new and (room <= 0 or len(lot) >= self._rules.parked_max)
            ):
                self.stopped = True
                return
            if is_new:
                runs.append(Run(offset, offset, DeliveryState.AVAILABLE))
                order.add(offset, batch.keys.get(offset))
            (run,) = runs.overlapping(offset, offset)
            if run.state is not DeliveryState.AVAILABLE:
                continue
            due_ms = 0 if run.delivery_count else dues_ms.get(offset, 0)
            if due_ms > self._now_ms or not order.is_first(offset):
                (run,) = runs.split_out(offset, offset)
                runs.park(run)
                self._touch(run)
                lot.wait(offset, due_ms, run.delivery_count)
            else:
                room -= is_new
                self._take_available(offset, offset, 1)

    def take(self, first_offset: int, last_offset: int, count_max: int | None) -> None:
        """Acquire what is available of these offsets, including those never delivered."""
        runs = self._runs
        left = last_offset - first_offset + 1 if count_max is None else count_max
        for run in runs.overlapping(first_offset, min(last_offset, runs.end_offset - 1)):
            if left <= 0:
                return
            if run.state is DeliveryState.AVAILABLE and run.last_offset >= first_offset:
                first = max(run.first_offset, first_offset)
                allowed = self._throttle.allowed(run, self.count)
                last = min(run.last_offset, last_offset)
                left -= self._take_available(first, last, min(left, allowed)) if allowed else 0
                if allowed <= last - first:
                    self.stopped = True
                    return
        if self._throttle.is_on and self.count:
            self.stopped = self.stopped or last_offset >= runs.end_offset
            return
        if left > 0 and last_offset >= runs.end_offset:
            self._take_new(last_offset, left, whole=count_max is None)
        self.stopped = last_offset >= runs.end_offset

    def _note_origins(self) -> None:
        """Records first delivered together belong together from now on."""
        for first, last, delivery_count in self.acquired:
            if delivery_count == 1:
                for run in self._runs.overlapping(first, last):
                    if run.origin is None and first <= run.first_offset and run.last_offset <= last:
                        run.origin = (first, last)

    def _take_available(self, first_offset: int, last_offset: int, left: int) -> int:
        last_offset = min(last_offset, first_offset + left - 1)
        (run,) = self._runs.split_out(first_offset, last_offset)
        self._touch(run)
        if run.delivery_count >= self._rules.delivery_count_limit:
            self._spent.append(run)
            return 0
        self._acquire(run)
        return run.count

    def _take_new(self, last_offset: int, left: int, *, whole: bool) -> None:
        runs = self._runs
        runs.drop_final()
        room = self._rules.room(runs)
        if room <= 0:
            return
        first_offset = runs.end_offset
        if not whole:
            last_offset = min(last_offset, first_offset + min(left, room) - 1)
        run = Run(first_offset, last_offset, DeliveryState.AVAILABLE)
        runs.append(run)
        self._touch(run)
        self._acquire(run)

    def _acquire(self, run: Run) -> None:
        run.acquire(self._member_id, self._lock_until_ms)
        self.count += run.count
        previous = self.acquired[-1] if self.acquired else None
        if (
            previous is not None
            and previous.last_offset + 1 == run.first_offset
            and previous.delivery_count == run.delivery_count
            and (self._batch_size is None or previous.record_count < self._batch_size)
        ):
            self.acquired[-1] = previous._replace(last_offset=run.last_offset)
        else:
            self.acquired.append(
                AcquiredRange(run.first_offset, run.last_offset, run.delivery_count)
            )

    def park(self, offset: int, due_ms: int) -> bool:
        """Not due yet; False if it was delivered before, or is held."""
        runs = self._runs
        if offset == runs.end_offset:
            runs.append(Run(offset, offset, DeliveryState.AVAILABLE))
        for run in runs.overlapping(offset, offset):
            if run.state is not DeliveryState.AVAILABLE or run.delivery_count:
                return False
        for run in runs.split_out(offset, offset):
            runs.park(run)
            self._touch(run)
            self._lot.wait(offset, due_ms, 0)
        return True

    def pass_over(self, first_offset: int, last_offset: int) -> None:
        """There are no records to deliver at these offsets."""
        runs = self._runs
        assert first_offset <= runs.end_offset, "nothing is left out"
        for run in runs.split_out(first_offset, last_offset):
            if run.state is DeliveryState.AVAILABLE:
                run.leave_to(DeliveryState.ARCHIVED)
                self._lot.on_done(run.first_offset, run.last_offset)
                self._touch(run)
        if max(first_offset, runs.end_offset) <= last_offset:
            run = Run(runs.end_offset, last_offset, DeliveryState.ARCHIVED)
            runs.append(run)
            self._touch(run)

    def _touch(self, run: Run) -> None:
        self.first_offset = min(self.first_offset, run.first_offset)
        self.last_offset = max(self.last_offset, run.last_offset)
