"""A share-partition's records outside its window: waiting or held.

    Blocked    the previous record of the same key is done          -> Waiting
    Waiting    its time comes, acquire                              -> Taken
    Taken      accept, gap                                          -> done
               release, put back, the lock ends, the member is gone -> Waiting
                 at the delivery count limit, dead letter wanted    -> Archiving
               reject, dead letter wanted                           -> Archiving
    Archiving  the dead letter is written                           -> done

A record enters from the window, which counts it as done, and does not return there. A taken record
is either locked by a member of the group or held: a hold does not end with the member. What is
persisted is the time before which a new leader must not deliver the record: the end of its delay or
of its hold. The holder is not persisted, since the delivery count is enough; nor is being blocked,
which only happens in groups with key order.

Methods change the state at once; `changes` returns what must be persisted.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final, NamedTuple

from ottla.groups.share.delivery import DeadLetter, DeadLetterReason
from ottla.groups.share.key_order import KeyOrder
from ottla.groups.share.parked import (
    ARCHIVING_DUE_MS,
    NO_CHANGE,
    Parked,
    ParkedChange,
    ParkedRecord,
)

EXPIRED_MAX: Final = 4_096  # Locks expired at a time, so that writes stay small.
_STALE_MAX: Final = 1_024


class Taken(NamedTuple):
    holder: str  # A member id.
    delivery_count: int
    lock_until_ms: int
    due_ms: int  # As persisted: when a new leader may deliver it.
    is_hold: bool


class _Archived(NamedTuple):
    delivery_count: int
    reason: DeadLetterReason | None  # Unknown after loading.


class ParkingLot:
    def __init__(self, records: Iterable[ParkedChange] = ()) -> None:
        """`records` are the persisted pages."""
        self.waiting = Parked()
        self._blocked = Parked()
        self.order: KeyOrder | None = None  # Of all unfinished records, also in the window.
        self._taken: dict[int, Taken] = {}
        self._locked_count = 0  # Taken records that are not held.
        self._locks: list[tuple[int, int]] = []  # A heap of ends and offsets; some outdated.
        self._archiving: dict[int, _Archived] = {}
        self._changed: dict[int, ParkedRecord | None] = {}
        self._dropped_before: int | None = None
        for page in records:
            self._load(page)

    def _load(self, page: ParkedChange) -> None:
        self.waiting.apply(page)
        if ARCHIVING_DUE_MS in page.dues_ms:
            for offset, due_ms, count in page.records():
                if due_ms == ARCHIVING_DUE_MS:
                    self.waiting.remove(offset)
                    self._archiving[offset] = _Archived(count, None)

    def __len__(self) -> int:
        return self.waiting_count + len(self._taken) + len(self._archiving)

    @property
    def waiting_count(self) -> int:
        """The records that no consumer has."""
        return len(self.waiting) + len(self._blocked)

    @property
    def taken_count(self) -> int:
        return len(self._taken)

    @property
    def archiving_count(self) -> int:
        return len(self._archiving)

    @property
    def locked_count(self) -> int:
        return self._locked_count

    def taken(self, offset: int) -> Taken | None:
        return self._taken.get(offset)

    def has_delivery(self, offset: int, holder: str, delivery_count: int) -> bool:
        """Whether the holder has it, or no one has had it since that delivery."""
        taken = self._taken.get(offset)
        if taken is not None:
            return (taken.holder, taken.delivery_count) == (holder, delivery_count)
        record = self.waiting.get(offset) or self._blocked.get(offset)
        return record is not None and record.delivery_count == delivery_count

    def taken_between(self, first_offset: int, last_offset: int) -> list[int]:
        """Sorted offsets."""
        if last_offset - first_offset < len(self._taken):
            return [each for each in range(first_offset, last_offset + 1) if each in self._taken]
        return sorted(each for each in self._taken if first_offset <= each <= last_offset)

    def waits_between(self, first_offset: int, last_offset: int) -> bool:
        pages = (each.page(first_offset, 1).offsets for each in (self.waiting, self._blocked))
        return any(found and found[0] <= last_offset for found in pages)

    def next_timeout_ms(self, now_ms: int) -> int | None:
        """When a lock ends or a record becomes due; excludes those already due."""
        times = []
        if (lock_ms := self._next_lock_ms()) is not None:
            times.append(lock_ms)
        due_ms = self.waiting.next_due_ms() if self.waiting else None
        if due_ms is not None and due_ms > now_ms:
            times.append(due_ms)
        return min(times, default=None)

    def unfinished(self) -> Iterator[int]:
        """Offsets that may be delivered again, unsorted."""
        yield from self._taken
        for parked in (self.waiting, self._blocked):
            yield from (record.offset for record in parked.records())

    def archiving(self, limit: int) -> Iterator[DeadLetter]:
        """Unsorted. `limit` is the delivery count limit, which determines the likely reason."""
        for offset, (count, reason) in self._archiving.items():
            likely = (
                DeadLetterReason.DELIVERY_COUNT if count >= limit else DeadLetterReason.REJECTED
            )
            yield DeadLetter(offset, offset, count, reason or likely)

    # Changes.

    def wait(self, offset: int, due_ms: int, delivery_count: int) -> None:
        """Wait until due; with key order also for the earlier records of the key."""
        self._forget(offset)
        is_first = self.order is None or self.order.is_first(offset)
        (self.waiting if is_first else self._blocked).set(offset, due_ms, delivery_count)
        self._changed[offset] = ParkedRecord(offset, due_ms, delivery_count)

    def take(self, offset: int, taken: Taken) -> None:
        self._forget(offset)
        self._taken[offset] = taken
        self._locked_count += not taken.is_hold
        heappush(self._locks, (taken.lock_until_ms, offset))
        self._changed[offset] = ParkedRecord(offset, taken.due_ms, taken.delivery_count)

    def archive(self, offset: int, delivery_count: int, reason: DeadLetterReason) -> DeadLetter:
        self._forget(offset)
        self._archiving[offset] = _Archived(delivery_count, reason)
        self._changed[offset] = ParkedRecord(offset, ARCHIVING_DUE_MS, delivery_count)
        self.on_done(offset, offset)
        return DeadLetter(offset, offset, delivery_count, reason)

    def finish(self, offset: int) -> None:
        self._forget(offset)
        self._changed[offset] = None
        self.on_done(offset, offset)

    def finish_archiving(self, first_offset: int, last_offset: int) -> None:
        for offset in range(first_offset, last_offset + 1) if self._archiving else ():
            if offset in self._archiving:
                self.finish(offset)

    def finish_before(self, offset: int) -> int:
        """Records before the offset are gone from the log; returns how many there were."""
        if not self and self.order is None:
            return 0
        count = self.waiting.remove_range(0, offset - 1)
        count += self._blocked.remove_range(0, offset - 1)
        for each in [*self._taken, *self._archiving]:
            if each < offset:
                self._forget(each)
                count += 1
        if count:
            self._dropped_before = offset
        for first in () if self.order is None else self.order.finish_before(offset):
            self._unblock(first)
        return count

    # Key order.

    def set_order(self, order: KeyOrder | None) -> None:
        """Applies from now on; without an order nothing is blocked."""
        self.order = order
        for record in list(self._blocked.records()):
            self._unblock(record.offset)
        if order is None:
            return
        for record in list(self.waiting.records()):
            if not order.is_first(record.offset):
                self.waiting.remove(record.offset)
                self._blocked.set(*record)

    def on_done(self, first_offset: int, last_offset: int) -> None:
        """Records of the lot or the window will not be delivered again."""
        if self.order is None:
            return
        for offset in range(first_offset, last_offset + 1):
            first = self.order.finish(offset)
            if first is not None:
                self._unblock(first)

    def _unblock(self, offset: int) -> None:
        record = self._blocked.remove(offset)
        if record is not None:
            self.waiting.set(*record)

    # Locks.

    def expired(self, now_ms: int) -> list[int]:
        """Offsets of expired locks; not all of them if there are very many."""
        found: dict[int, None] = {}
        while len(found) < EXPIRED_MAX:
            lock_ms = self._next_lock_ms()
            if lock_ms is None or lock_ms > now_ms:
                break
            found[heappop(self._locks)[1]] = None
        return list(found)

    def shift_locks(self, milliseconds: int) -> None:
        """Persisted hold times stay: they are for the clock of another leader."""
        self._taken = {
            offset: taken._replace(lock_until_ms=taken.lock_until_ms + milliseconds)
            for offset, taken in self._taken.items()
        }
        self._locks = [(each.lock_until_ms, offset) for offset, each in self._taken.items()]
        heapify(self._locks)

    def locked_by(self, member_id: str) -> list[int]:
        """Excludes the records that it holds."""
        if not self._locked_count:
            return []
        return [
            offset
            for offset, taken in self._taken.items()
            if taken.holder == member_id and not taken.is_hold
        ]

    def changes(self) -> ParkedChange:
        """The changes since the last call."""
        if not self._changed and self._dropped_before is None:
            return NO_CHANGE
        removed = list(_ranges(each for each, record in self._changed.items() if record is None))
        if self._dropped_before is not None:
            removed.insert(0, (0, self._dropped_before - 1))
        records = sorted(record for record in self._changed.values() if record is not None)
        self._changed = {}
        self._dropped_before = None
        return ParkedChange.of(records, removed)

    def _forget(self, offset: int) -> None:
        taken = self._taken.pop(offset, None)
        if taken is not None:
            self._locked_count -= not taken.is_hold
        elif self._archiving.pop(offset, None) is None and self.waiting.remove(offset) is None:
            self._blocked.remove(offset)

    def _next_lock_ms(self) -> int | None:
        if len(self._locks) > 2 * len(self._taken) + _STALE_MAX:
            self._locks = [(each.lock_until_ms, offset) for offset, each in self._taken.items()]
            heapify(self._locks)
        while self._locks:
            lock_ms, offset = self._locks[0]
            taken = self._taken.get(offset)
            if taken is not None and taken.lock_until_ms == lock_ms:
                return lock_ms
            heappop(self._locks)
        return None


def _ranges(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive offsets."""
    ordered = sorted(offsets)
    if not ordered:
        return
    first = ordered[0]
    for offset, following in pairwise(ordered):
        if following != offset + 1:
            yield first, offset
            first = following
    yield first, ordered[-1]
