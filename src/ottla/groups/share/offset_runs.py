"""Consecutive offsets, divided into runs that share a state.

The runs cover all offsets from the start to the end, in order, without holes or overlaps. Changing
a range splits the runs at its ends; neighbours that have become equal are joined again, so that
there are never more runs than the deliveries need.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Self

from ottla.groups.share.delivery import (
    DELIVERY_COUNT_MAX,
    DeadLetterReason,
    DeliveryState,
    StateBatch,
)

_first_offset = attrgetter("first_offset")


# First and last offset of the range that a record belonged to on its first delivery.
Origin = tuple[int, int]


class Run:
    __slots__ = (
        "delivery_count",
        "first_offset",
        "last_offset",
        "lock_until_ms",
        "member_id",
        "origin",
        "reason",
        "state",
    )

    def __init__(
        self,
        first_offset: int,
        last_offset: int,
        state: DeliveryState,
        delivery_count: int = 0,
        member_id: str | None = None,
        lock_until_ms: int = 0,
    ) -> None:
        assert first_offset <= last_offset
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id  # The member that has acquired it.
        self.lock_until_ms = lock_until_ms
        self.origin: Origin | None = None  # None before the first delivery.
        self.reason: DeadLetterReason | None = None  # For Archiving; unknown after loading.

    @classmethod
    def loaded(cls, first_offset: int, batch: StateBatch) -> Self:
        """A run from an offset on, as persisted."""
        run = cls(first_offset, batch.last_offset, batch.state.written, batch.delivery_count)
        run.origin = (first_offset, batch.last_offset)
        return run

    @property
    def count(self) -> int:
        return self.last_offset - self.first_offset + 1

    def acquire(self, member_id: str, lock_until_ms: int) -> None:
        assert self.state is DeliveryState.AVAILABLE
        self.state = DeliveryState.ACQUIRED
        self.delivery_count = min(self.delivery_count + 1, DELIVERY_COUNT_MAX)
        self.member_id = member_id
        self.lock_until_ms = lock_until_ms

    def leave_to(self, state: DeliveryState, reason: DeadLetterReason | None = None) -> None:
        """Release the run from its member."""
        assert not self.state.is_final
        self.state = state
        self.reason = reason
        self.member_id = None
        self.lock_until_ms = 0

    def _is_like(self, other: "Run") -> bool:
        return (
            self.state is other.state
            and self.delivery_count == other.delivery_count
            and self.member_id == other.member_id
            and self.lock_until_ms == other.lock_until_ms
            and self.reason is other.reason
            and (self.origin == other.origin or not self.state.is_unfinished)
        )


class Runs:
    def __init__(self, start_offset: int) -> None:
        self._runs: list[Run] = []
        self.start_offset = start_offset
        self.end_offset = start_offset  # Where the next run begins.
        self.has_parked = False  # True while some run may be parked.

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def span(self) -> int:
        return self.end_offset - self.start_offset

    @property
    def left_behind(self) -> int:
        """Offsets at the start that are not delivered again: they wait only for dead letters."""
        for run in self._runs:
            if run.state is not DeliveryState.ARCHIVING and not run.state.is_final:
                return run.first_offset - self.start_offset
        return self.span

    @property
    def parked_count(self) -> int:
        """Offsets that the parking lot delivers."""
        if not self.has_parked:
            return 0
        return sum(run.count for run in self._runs if run.state is DeliveryState.PARKED)

    def unfinished(self) -> Iterator[int]:
        """Offsets that may be delivered again."""
        for run in self._runs:
            if run.state in (DeliveryState.AVAILABLE, DeliveryState.ACQUIRED):
                yield from range(run.first_offset, run.last_offset + 1)

    def append(self, run: Run) -> None:
        assert run.first_offset == self.end_offset, "runs leave no holes"
        self.end_offset = run.last_offset + 1
        self._runs.append(run)

    def overlapping(self, first_offset: int, last_offset: int) -> list[Run]:
        """The runs that have offsets in the range, unsplit."""
        low, high = self._run_indexes(first_offset, last_offset)
        return self._runs[low:high]

    def split_out(self, first_offset: int, last_offset: int) -> list[Run]:
        """The runs of the range, split at its ends so that they have no other offsets."""
        first = max(first_offset, self.start_offset)
        last = min(last_offset, self.end_offset - 1)
        if first > last:
            return []
        self._split(first)
        self._split(last + 1)
        return self.overlapping(first, last)

    def join(self, first_offset: int, last_offset: int) -> None:
        """Join equal neighbours in and next to the range."""
        low, high = self._run_indexes(first_offset - 1, last_offset + 1)
        joined: list[Run] = []
        for run in self._runs[low:high]:
            if joined and joined[-1]._is_like(run):
                joined[-1].last_offset = run.last_offset
            else:
                joined.append(run)
        self._runs[low:high] = joined

    def shift_locks(self, milliseconds: int) -> None:
        for run in self._runs:
            if run.state is DeliveryState.ACQUIRED:
                run.lock_until_ms += milliseconds

    def park(self, run: Run) -> None:
        run.leave_to(DeliveryState.PARKED)
        self.has_parked = True

    def drop_final(self) -> None:
        """Forget the finished runs at the start."""
        count = 0
        for run in self._runs:
            if not run.state.is_final:
                break
            count += 1
        self._drop(count)

    def drop_before(self, offset: int) -> None:
        """Forget everything before `offset`, which may be past the end."""
        if offset <= self.start_offset:
            return
        if offset >= self.end_offset:
            self._runs.clear()
            self.start_offset = self.end_offset = offset
            return
        self._split(offset)
        self._drop(self._run_indexes(offset, offset)[0])

    def _drop(self, count: int) -> None:
        del self._runs[:count]
        self.start_offset = self._runs[0].first_offset if self._runs else self.end_offset
        self.has_parked = self.has_parked and bool(self._runs)

    def _run_indexes(self, first_offset: int, last_offset: int) -> tuple[int, int]:
        low = max(bisect_right(self._runs, first_offset, key=_first_offset) - 1, 0)
        return low, bisect_right(self._runs, last_offset, lo=low, key=_first_offset)

    def _split(self, offset: int) -> None:
        """Make a run begin at `offset`, if it lies inside one."""
        if not self.start_offset < offset < self.end_offset:
            return
        run_index = bisect_right(self._runs, offset, key=_first_offset) - 1
        run = self._runs[run_index]
        if run.first_offset == offset:
            return
        rest = Run(
            offset,
            run.last_offset,
            run.state,
            run.delivery_count,
            run.member_id,
            run.lock_until_ms,
        )
        rest.reason = run.reason
        rest.origin = run.origin
        run.last_offset = offset - 1
        self._runs.insert(run_index + 1, rest)
