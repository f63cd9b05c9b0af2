"""A share-partition: which records of a partition a share group has in flight, and with whom.

It lives on the partition's leader. The states of a record and what moves it from one to the other
are in `delivery`. All offsets from `start_offset` to `end_offset` are in flight; what lies before
is done, and what lies after was never handed out.

An operation changes the state at once and returns a Change: what of it has to be written down (by
the share coordinator) before a consumer is told, and the dead letters that it made. If that write
fails, the share-partition is dropped and made again from what is written. Time is passed in.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from ottla.groups.share.acknowledgements import TypedRange, typed_ranges
from ottla.groups.share.delivery import (
    Acknowledgement,
    AcknowledgeType,
    DeadLetter,
    DeadLetterReason,
    DeliveryState,
    StateBatch,
)
from ottla.groups.share.runs import Run, Runs
from ottla.groups.share.taking import AcquiredRange, DeliveryRules, LogBatch, Taking
from ottla.protocol.errors import ApiError, ErrorCode


class Change(NamedTuple):
    start_offset: int
    batches: tuple[StateBatch, ...] = ()  # What has changed and is not before the start offset.
    dead_letters: tuple[DeadLetter, ...] = ()
    is_written: bool = True  # False when there is nothing to write down.


class SharePartition:
    def __init__(
        self, start_offset: int, batches: Iterable[StateBatch], rules: DeliveryRules
    ) -> None:
        """`batches` is what was written of the records from the start offset on."""
        self.rules = rules
        self._runs = Runs(start_offset)
        for batch in sorted(batches):
            self._load(batch)
        self._runs.drop_final()

    def _load(self, batch: StateBatch) -> None:
        """Offsets before it that nothing was written about were handed out at most once."""
        runs = self._runs
        first = max(batch.first_offset, runs.end_offset)
        if first > batch.last_offset:
            return
        if first > runs.end_offset:
            runs.append(Run(runs.end_offset, first - 1, DeliveryState.AVAILABLE))
        runs.append(Run(first, batch.last_offset, batch.state.written, batch.delivery_count))

    # What it is.

    @property
    def start_offset(self) -> int:
        return self._runs.start_offset

    @property
    def end_offset(self) -> int:
        """Nothing from here on was ever handed out."""
        return self._runs.end_offset

    @property
    def delivery_complete_count(self) -> int:
        """Of the records that are done, though some before them are not (KIP-1226)."""
        return sum(run.count for run in self._runs if run.state.is_final)

    def runs(self) -> Iterator[Run]:
        return iter(self._runs)

    def fetch_offset(self) -> int | None:
        """Where to read what can be acquired next; None when too much is in flight already."""
        for run in self._runs:
            if run.state is DeliveryState.AVAILABLE:
                return run.first_offset
        return self.end_offset if self.rules.room(self._runs) > 0 else None

    @property
    def waits_for_dead_letters(self) -> bool:
        """Nothing can be handed out, now or later, before some dead letters are written."""
        runs = self._runs
        return runs.span > 0 and runs.left_behind == runs.span and self.rules.room(runs) <= 0

    def next_timeout_ms(self) -> int | None:
        """When the first lock ends."""
        locks = [run.lock_until_ms for run in self._runs if run.state is DeliveryState.ACQUIRED]
        return min(locks, default=None)

    def archiving(self) -> tuple[DeadLetter, ...]:
        """The dead letters that are not written yet, as far as is known."""
        return tuple(
            DeadLetter(run.first_offset, run.last_offset, run.delivery_count, self._reason(run))
            for run in self._runs
            if run.state is DeliveryState.ARCHIVING
        )

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
    ) -> tuple[tuple[AcquiredRange, ...], Change]:
        """Give the member what is available in `batches`, which were read from `fetch_offset` on.

        Batches are given as a whole, though the last one passes `records_max`, in ranges of about
        `batch_size` records; without that not more than `records_max`, though it cuts a batch.
        """
        taking = Taking(self._runs, self.rules, member_id, batch_size, now_ms)
        offset = max(fetch_offset, self.start_offset)
        for batch in batches:
            if batch.last_offset < offset:
                continue
            left = records_max - taking.count
            if left <= 0 or taking.stopped:
                break
            taking.pass_over(offset, batch.first_offset - 1)
            first = max(offset, batch.first_offset)
            if batch.deliverable:
                taking.take(first, batch.last_offset, left if batch_size is None else None)
            else:
                taking.pass_over(first, batch.last_offset)
            offset = batch.last_offset + 1
        dead_letters: list[DeadLetter] = []
        for run in taking.given_up():
            self._give_up(run, dead_letters)
        change = self._changed(taking.first_offset, taking.last_offset, dead_letters)
        return tuple(taking.acquired), change

    # What ends a delivery.

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], now_ms: int
    ) -> Change:
        """All of it or nothing; what lies before the start offset is done and passed over."""
        ranges = [
            found
            for found in typed_ranges(acknowledgements)
            if found.last_offset >= self.start_offset
        ]
        for found in ranges:
            self._validate_acquired(member_id, found)
        dead_letters: list[DeadLetter] = []
        for first, last, kind in ranges:
            for run in self._runs.cut(first, last):
                self._acknowledge(run, kind, now_ms, dead_letters)
        if not ranges:
            return self._unchanged()
        first, last = ranges[0].first_offset, ranges[-1].last_offset
        if all(found.kind is AcknowledgeType.RENEW for found in ranges):
            self._runs.join(first, last)
            return self._unchanged()
        return self._changed(first, last, dead_letters)

    def _validate_acquired(self, member_id: str, found: TypedRange) -> None:
        if found.last_offset >= self.end_offset:
            raise ApiError(
                ErrorCode.invalid_request,
                f"offset {found.last_offset} was not delivered; {self.end_offset} is the next one",
            )
        for run in self._runs.overlapping(found.first_offset, found.last_offset):
            if run.state is not DeliveryState.ACQUIRED or run.member_id != member_id:
                raise ApiError(
                    ErrorCode.invalid_record_state,
                    f"offset {max(run.first_offset, found.first_offset)} is not acquired by"
                    f" {member_id}; its lock may have timed out",
                )

    def _acknowledge(
        self, run: Run, kind: AcknowledgeType, now_ms: int, dead_letters: list[DeadLetter]
    ) -> None:
        match kind:
            case AcknowledgeType.ACCEPT:
                run.leave_to(DeliveryState.ACKNOWLEDGED)
            case AcknowledgeType.RELEASE:
                self._release(run, dead_letters)
            case AcknowledgeType.REJECT:
                wanted = self.rules.dead_letters_of_rejected
                self._archive(run, DeadLetterReason.REJECTED, dead_letters, wanted=wanted)
            case AcknowledgeType.GAP:
                run.leave_to(DeliveryState.ARCHIVED)
            case AcknowledgeType.RENEW:
                run.lock_until_ms = now_ms + self.rules.lock_duration_ms

    def release_member(self, member_id: str) -> Change:
        """The member is gone: what it has goes back."""
        return self._release_where(lambda run: run.member_id == member_id)

    def expire(self, now_ms: int) -> Change:
        """Locks end."""
        return self._release_where(lambda run: run.lock_until_ms <= now_ms)

    def _release_where(self, matches: Callable[[Run], bool]) -> Change:
        found = [run for run in self._runs if run.state is DeliveryState.ACQUIRED and matches(run)]
        if not found:
            return self._unchanged()
        touched = [(run.first_offset, run.last_offset) for run in found]
        dead_letters: list[DeadLetter] = []
        for run in found:
            self._release(run, dead_letters)
        return self._changed_ranges(touched, dead_letters)

    def _release(self, run: Run, dead_letters: list[DeadLetter]) -> None:
        if run.delivery_count < self.rules.delivery_count_limit:
            run.leave_to(DeliveryState.AVAILABLE)
        else:
            self._give_up(run, dead_letters)

    def _give_up(self, run: Run, dead_letters: list[DeadLetter]) -> None:
        """It was delivered as often as is allowed."""
        reason = DeadLetterReason.DELIVERY_COUNT
        self._archive(run, reason, dead_letters, wanted=self.rules.dead_letters)

    def _archive(
        self, run: Run, reason: DeadLetterReason, dead_letters: list[DeadLetter], *, wanted: bool
    ) -> None:
        if not wanted:
            run.leave_to(DeliveryState.ARCHIVED)
        else:
            run.leave_to(DeliveryState.ARCHIVING, reason)
            letter = DeadLetter(run.first_offset, run.last_offset, run.delivery_count, reason)
            dead_letters.append(letter)

    # What happens outside.

    def on_dead_letters_written(self, letters: Sequence[DeadLetter]) -> Change:
        touched = [(letter.first_offset, letter.last_offset) for letter in letters]
        for first, last in touched:
            for run in self._runs.cut(first, last):
                if run.state is DeliveryState.ARCHIVING:
                    run.leave_to(DeliveryState.ARCHIVED)
        return self._changed_ranges(touched, ()) if touched else self._unchanged()

    def on_log_start(self, log_start_offset: int) -> Change:
        """Retention or DeleteRecords took the records before this offset away."""
        if log_start_offset <= self.start_offset:
            return self._unchanged()
        self._runs.drop_before(log_start_offset)
        self._runs.drop_final()
        return Change(self.start_offset)

    # Changes.

    def _unchanged(self) -> Change:
        return Change(self.start_offset, is_written=False)

    def _changed(
        self, first_offset: int, last_offset: int, dead_letters: Sequence[DeadLetter] = ()
    ) -> Change:
        if first_offset > last_offset:
            return self._unchanged()
        return self._changed_ranges([(first_offset, last_offset)], dead_letters)

    def _changed_ranges(
        self, ranges: Sequence[tuple[int, int]], dead_letters: Sequence[DeadLetter]
    ) -> Change:
        for first, last in ranges:
            self._runs.join(first, last)
        self._runs.drop_final()
        batches = tuple(batch for first, last in ranges for batch in self._written(first, last))
        return Change(self.start_offset, batches, tuple(dead_letters))

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
