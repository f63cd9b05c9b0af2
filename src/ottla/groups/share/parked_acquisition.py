"""What a member acquires from the parked records of a fetch."""

from collections.abc import Iterable

from ottla.groups.share.acquisition import AcquiredRange, DeliveryRules
from ottla.groups.share.delivery import DELIVERY_COUNT_MAX
from ottla.groups.share.parking_lot import ParkingLot, Taken
from ottla.groups.share.settling import InLot, Settling


class ParkedAcquisition:
    def __init__(
        self, lot: ParkingLot, rules: DeliveryRules, settling: Settling, now_ms: int
    ) -> None:
        self.acquired: list[AcquiredRange] = []
        self.lost_count = 0  # Records no longer in the log.
        self._lot = lot
        self._rules = rules
        self._settling = settling
        self._now_ms = now_ms

    def take(
        self, found: Iterable[tuple[int, bool]], member_id: str, records_max: int, hold_ms: int
    ) -> None:
        """`found` has ascending offsets, and whether the log has them."""
        lot = self._lot
        lock_until_ms = self._now_ms + (hold_ms or self._rules.lock_duration_ms)
        for offset, is_there in found:
            record = lot.waiting.get(offset)
            if record is None or record.due_ms > self._now_ms:
                continue
            if not is_there:
                lot.finish(offset)
                self.lost_count += 1
            elif record.delivery_count >= self._rules.delivery_count_limit:
                self._settling.give_up(InLot(offset, record.delivery_count, lot))
            elif records_max > 0:
                records_max -= 1
                count = min(record.delivery_count + 1, DELIVERY_COUNT_MAX)
                due_ms = lock_until_ms if hold_ms else record.due_ms
                lot.take(offset, Taken(member_id, count, lock_until_ms, due_ms, bool(hold_ms)))
                self._add(offset, count)

    def _add(self, offset: int, delivery_count: int) -> None:
        last = self.acquired[-1] if self.acquired else None
        if last is not None and (offset - 1, delivery_count) == last[1:]:
            self.acquired[-1] = last._replace(last_offset=offset)
        else:
            self.acquired.append(AcquiredRange(offset, offset, delivery_count))
