"""Applies the outcome of a delivery, to records in the window and in the parking lot."""

from typing import Protocol

from ottla.groups.share.acquisition import DeliveryRules
from ottla.groups.share.delivery import (
    AcknowledgeType,
    DeadLetter,
    DeadLetterReason,
    DeliveryState,
)
from ottla.groups.share.offset_runs import Run, Runs
from ottla.groups.share.parking_lot import ParkingLot, Taken
from ottla.protocol.messages.delivery_acknowledge import (
    POLICY_DELAY,
    Delivery,
    DeliveryAcknowledgeType,
)


class Delivered(Protocol):
    """Records that were delivered together."""

    @property
    def delivery_count(self) -> int: ...

    def finish(self, state: DeliveryState) -> None: ...

    def wait(self, due_ms: int, now_ms: int, delivery_count: int) -> None:
        """Make them available again at `due_ms`."""

    def archive(self, reason: DeadLetterReason) -> DeadLetter: ...

    def hold(self, holder: str, until_ms: int) -> None: ...


class InWindow:
    def __init__(self, run: Run, runs: Runs, lot: ParkingLot) -> None:
        self._run = run
        self._runs = runs
        self._lot = lot

    @property
    def delivery_count(self) -> int:
        return self._run.delivery_count

    def finish(self, state: DeliveryState) -> None:
        self._run.leave_to(state)
        self._lot.on_done(self._run.first_offset, self._run.last_offset)

    def wait(self, due_ms: int, now_ms: int, delivery_count: int) -> None:
        run = self._run
        if due_ms <= now_ms:
            run.leave_to(DeliveryState.AVAILABLE)
            run.delivery_count = delivery_count
            return
        self._runs.park(run)
        for offset in range(run.first_offset, run.last_offset + 1):
            self._lot.wait(offset, due_ms, delivery_count)

    def archive(self, reason: DeadLetterReason) -> DeadLetter:
        run = self._run
        run.leave_to(DeliveryState.ARCHIVING, reason)
        self._lot.on_done(run.first_offset, run.last_offset)
        return DeadLetter(run.first_offset, run.last_offset, run.delivery_count, reason)

    def hold(self, holder: str, until_ms: int) -> None:
        run = self._run
        self._runs.park(run)
        taken = Taken(holder, run.delivery_count, until_ms, until_ms, is_hold=True)
        for offset in range(run.first_offset, run.last_offset + 1):
            self._lot.take(offset, taken)


class InLot:
    def __init__(self, offset: int, delivery_count: int, lot: ParkingLot) -> None:
        self.delivery_count = delivery_count
        self._offset = offset
        self._lot = lot

    def finish(self, state: DeliveryState) -> None:
        del state
        self._lot.finish(self._offset)

    def wait(self, due_ms: int, now_ms: int, delivery_count: int) -> None:
        self._lot.wait(self._offset, max(due_ms, now_ms), delivery_count)

    def archive(self, reason: DeadLetterReason) -> DeadLetter:
        return self._lot.archive(self._offset, self.delivery_count, reason)

    def hold(self, holder: str, until_ms: int) -> None:
        taken = Taken(holder, self.delivery_count, until_ms, until_ms, is_hold=True)
        self._lot.take(self._offset, taken)


class Settling:
    """For one operation; `dead_letters` has the resulting ones."""

    def __init__(self, rules: DeliveryRules, now_ms: int) -> None:
        self.dead_letters: list[DeadLetter] = []
        self._rules = rules
        self._now_ms = now_ms

    def acknowledge(self, records: Delivered, kind: AcknowledgeType) -> None:
        """What a member reports, except renewals of its lock."""
        match kind:
            case AcknowledgeType.ACCEPT:
                self.accept(records)
            case AcknowledgeType.RELEASE:
                self.release(records)
            case AcknowledgeType.REJECT:
                self.reject(records)
            case AcknowledgeType.GAP:
                self.drop(records)

    def settle(self, records: Delivered, kind: DeliveryAcknowledgeType, delivery: Delivery) -> None:
        """A report on behalf of the holder."""
        match kind:
            case DeliveryAcknowledgeType.ACCEPT:
                self.accept(records)
            case DeliveryAcknowledgeType.RELEASE:
                delay_ms = None if delivery.delay_ms == POLICY_DELAY else delivery.delay_ms
                self.release(records, delay_ms)
            case DeliveryAcknowledgeType.REJECT:
                self.reject(records)
            case DeliveryAcknowledgeType.RENEW:
                self.hold(records, delivery.holder, delivery.lock_ms)
            case DeliveryAcknowledgeType.PUT_BACK:
                self.put_back(records)

    def accept(self, records: Delivered) -> None:
        records.finish(DeliveryState.ACKNOWLEDGED)

    def drop(self, records: Delivered) -> None:
        records.finish(DeliveryState.ARCHIVED)

    def release(self, records: Delivered, delay_ms: int | None = None) -> None:
        """Without a delay the group's back-off applies."""
        if records.delivery_count >= self._rules.delivery_count_limit:
            self.give_up(records)
            return
        if delay_ms is None:
            delay_ms = self._rules.backoff_after(records.delivery_count)
        records.wait(self._now_ms + delay_ms, self._now_ms, records.delivery_count)

    def put_back(self, records: Delivered) -> None:
        """Make them available, as if they had not been delivered."""
        records.wait(self._now_ms, self._now_ms, max(0, records.delivery_count - 1))

    def reject(self, records: Delivered) -> None:
        wanted = self._rules.dead_letters_of_rejected
        self._archive(records, DeadLetterReason.REJECTED, wanted=wanted)

    def give_up(self, records: Delivered) -> None:
        """They have reached the delivery count limit."""
        wanted = self._rules.dead_letters
        self._archive(records, DeadLetterReason.DELIVERY_COUNT, wanted=wanted)

    def hold(self, records: Delivered, holder: str, lock_ms: int) -> None:
        records.hold(holder, self._now_ms + lock_ms)

    def _archive(self, records: Delivered, reason: DeadLetterReason, *, wanted: bool) -> None:
        if wanted:
            self.dead_letters.append(records.archive(reason))
        else:
            self.drop(records)
