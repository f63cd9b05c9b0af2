"""A share fetch that waits until there is something to acquire.

The log is read first and records are acquired from what was read, so that no record is locked for
a consumer whose response is still waiting for the disk. If other consumers acquired some in
between, the fetch tries again. Cached data is read at once, other data in a thread.

Parked records that are due are delivered before others, and not together with them: they may be
anywhere in the log.
"""

import asyncio
from asyncio import AbstractEventLoop, Future
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import field
from typing import Final, NamedTuple

from ottla.coordination.share_partitions import LedSharePartition
from ottla.coordination.share_reading import Enough, batches_with, read_enough
from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.acquisition import AcquiredRange, LogBatch
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.records.batch import BatchHeader, iterate_headers
from ottla.records.decoder import ControlType, iterate_records, parse_marker
from ottla.records.deliver_at import delivery_times
from ottla.records.record_keys import key_numbers
from ottla.replication.partition import Partition
from ottla.storage.errors import NotCached

_PARKED_READ_MAX: Final = 500  # Parked records per fetch; they may be anywhere in the log.
_DELAYED_MAX: Final = 4_096  # Delayed records per fetch, or those of one batch.
_CACHED_BYTES_MAX: Final = 512 * 1024  # More is read in a thread, even if cached.
_KEYED_MIN: Final = 500  # Records per fetch whose keys are examined, or those of one batch.


@dataclass(frozen=True, slots=True)
class ShareFetchTerms:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    records_max: int
    batch_size: int | None  # Records per acquired range; None if `records_max` limits batches.
    committed_only: bool
    hold_ms: int = 0  # How long acquired records are held; 0 for member locks.


class ShareFetched(NamedTuple):
    records: bytes  # Whole batches, from the first acquired one to the last.
    acquired: tuple[AcquiredRange, ...]


class _Found(NamedTuple):
    topic_partition: TopicIdPartition
    led: LedSharePartition
    offset: int
    content: bytes
    batches: list[LogBatch]
    positions: list[int]  # Of the batches in the content, plus its end.
    parked: tuple[int, ...] = ()  # Offsets of the parked records that were read.
    in_order: bool = False


class _Wanted(NamedTuple):
    topic_partition: TopicIdPartition
    led: LedSharePartition
    offset: int
    parked: tuple[int, ...]
    in_order: bool  # Keys must be examined.


@dataclass(slots=True, eq=False)
class DelayedShareFetch:
    member_id: str
    partitions: Mapping[TopicIdPartition, LedSharePartition]
    terms: ShareFetchTerms
    loop: AbstractEventLoop
    executor: Executor
    errors: dict[TopicIdPartition, ApiError] = field(init=False, default_factory=dict)
    _news: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _abandoned: bool = field(init=False, default=False)

    def abandon(self) -> None:
        """No one waits for it any more: acquire nothing."""
        self._abandoned = True
        self._news.set()

    async def run(self) -> dict[TopicIdPartition, ShareFetched]:
        deadline = self.loop.time() + self.terms.max_wait_ms / 1000
        for led in self.partitions.values():
            led.wait(self._news.set)
        try:
            while True:
                self._news.clear()
                last = self.loop.time() >= deadline
                fetched = await self._try(at_any_size=last)
                if fetched or self.errors or last or self._abandoned or not self.partitions:
                    return fetched
                await self._wait_until(deadline)
        finally:
            for led in self.partitions.values():
                led.stop_waiting(self._news.set)

    async def _wait_until(self, deadline: float) -> None:
        try:
            async with asyncio.timeout_at(deadline):
                await self._news.wait()
        except TimeoutError:
            return

    async def _try(self, *, at_any_size: bool) -> dict[TopicIdPartition, ShareFetched]:
        found = await self._read_all()
        size = sum(len(each.content) for each in found)
        if self._abandoned or (size < self.terms.min_bytes and not at_any_size):
            return {}
        fetched: dict[TopicIdPartition, ShareFetched] = {}
        holds: dict[TopicIdPartition, Future[None]] = {}
        left = self.terms.records_max
        for each in found:
            if left <= 0:
                break
            try:
                taken, written = self._acquire(each, left)
            except ApiError as error:
                self.errors[each.topic_partition] = error.with_traceback(None)
                continue
            if taken.acquired:
                fetched[each.topic_partition] = taken
                left -= sum(last - first + 1 for first, last, _ in taken.acquired)
                if self.terms.hold_ms or each.in_order:
                    holds[each.topic_partition] = written
        await self._await_holds(holds, fetched)
        return self._unless_abandoned(fetched) if holds else fetched

    def _unless_abandoned(
        self, fetched: dict[TopicIdPartition, ShareFetched]
    ) -> dict[TopicIdPartition, ShareFetched]:
        """If the consumer went away while the holds were written, put the records back."""
        if not self._abandoned:
            return fetched
        for topic_partition, (_, acquired) in fetched.items():
            self.partitions[topic_partition].put_back(self.member_id, acquired)
        return {}

    async def _await_holds(
        self,
        holds: Mapping[TopicIdPartition, "Future[None]"],
        fetched: dict[TopicIdPartition, ShareFetched],
    ) -> None:
        """Drop partitions whose hold may not be written: the holder could lose the record early.

        Only the write also makes certain that the previous record of the key is done.
        """
        for topic_partition, written in holds.items():
            try:
                await written
            except ApiError as error:
                del fetched[topic_partition]
                self.errors[topic_partition] = ApiError(
                    ErrorCode.not_leader_or_follower, error.message
                )

    # Reading.

    async def _read_all(self) -> list[_Found]:
        """Skips partitions with nothing to give."""
        wanted = []
        for topic_partition, led in self.partitions.items():
            try:
                await led.know_keys(self.executor)
                limit = self._limit(led.partition)
                due = led.due_offsets(min(self.terms.records_max, _PARKED_READ_MAX))
                parked = tuple(due[: bisect_left(due, limit)])
                offset = parked[0] if parked else led.fetch_offset()
            except ApiError as error:
                self.errors[topic_partition] = error.with_traceback(None)
                continue
            if offset is not None and offset < limit:
                in_order = led.state.rules.key_order
                wanted.append(_Wanted(topic_partition, led, offset, parked, in_order))
        if not wanted:
            return []
        if not self.terms.committed_only and not any(map(_is_for_a_thread, wanted)):
            try:
                return self._read(wanted, cached_only=True)
            except NotCached:
                for each in wanted:
                    self.errors.pop(each.topic_partition, None)  # They are checked again.
        return await self.loop.run_in_executor(self.executor, self._read, wanted)

    def _limit(self, partition: Partition) -> int:
        log = partition.log
        if self.terms.committed_only:
            return log.last_stable_offset(log.high_watermark)
        return log.high_watermark

    def _read(self, wanted: Iterable[_Wanted], cached_only: bool = False) -> list[_Found]:
        """Call in a thread; with `cached_only` on the loop: NotCached if it needs a thread."""
        found: list[_Found] = []
        terms = self.terms
        left = Enough(terms.records_max, terms.min_bytes, terms.max_bytes)
        for topic_partition, led, offset, parked, in_order in wanted:
            if left.is_met:
                break
            room = left.bytes_max
            if cached_only and terms.max_bytes - room > _CACHED_BYTES_MAX:
                raise NotCached
            try:
                if parked:
                    content, parked = self._read_parked(led.partition, parked, room)
                    then = left.left(len(parked), len(content))
                else:
                    asked = left._replace(records=max(left.records, _KEYED_MIN if in_order else 0))
                    content, then = read_enough(
                        led.partition,
                        offset,
                        asked,
                        committed_only=terms.committed_only,
                        cached_only=cached_only,
                    )
                    if in_order:  # How many are delivered depends on their keys.
                        then = then._replace(records=left.records)
            except ApiError as error:
                self.errors[topic_partition] = error.with_traceback(None)
                continue
            if found and len(content) > room:
                continue
            left = then
            if cached_only and led.partition.log.config.delivery_delay_enable:
                _validate_plain(content)
            batches, positions = self._batches(
                led.partition, content, were_parked=bool(parked), in_order=in_order
            )
            found.append(
                _Found(topic_partition, led, offset, content, batches, positions, parked, in_order)
            )
        return found

    def _read_parked(
        self, partition: Partition, parked: tuple[int, ...], room: int
    ) -> tuple[bytes, tuple[int, ...]]:
        """The batches of these records, concatenated, and the offsets that were read."""
        parts: list[bytes] = []
        size = 0
        only_committed = self.terms.committed_only
        for first, batch in batches_with(partition, parked, committed_only=only_committed):
            if size >= room:
                return b"".join(parts), parked[: bisect_left(parked, first)]
            parts.append(batch)
            size += len(batch)
        return b"".join(parts), parked

    def _batches(
        self, partition: Partition, content: bytes, *, were_parked: bool, in_order: bool
    ) -> tuple[list[LogBatch], list[int]]:
        """Keeps all batches of parked records: an omitted one would count as gone from the log."""
        batches: list[LogBatch] = []
        positions: list[int] = []
        aborted = _Aborted(partition, content) if self.terms.committed_only else None
        looks_at_times = partition.log.config.delivery_delay_enable and not were_parked
        looks_at_keys = in_order and not were_parked
        keyed_max = max(self.terms.records_max, _KEYED_MIN)
        delayed_count = keyed_count = 0
        for position, header in iterate_headers(content):
            if delayed_count >= _DELAYED_MAX or keyed_count >= keyed_max:
                positions.append(position)
                return batches, positions
            deliverable = header.records_count > 0 and not header.is_control
            if aborted is not None and aborted.has(header, content, position):
                deliverable = False
            delayed: tuple[tuple[int, int], ...] = ()
            if looks_at_times and deliverable:
                delayed = delivery_times(content, position, header)
                delayed_count += len(delayed)
            keys = None
            if looks_at_keys and deliverable:
                keys = key_numbers(content, position)
                keyed_count += header.records_count
            batches.append(
                LogBatch(header.base_offset, header.last_offset, deliverable, delayed, keys)
            )
            positions.append(position)
        positions.append(len(content))
        return batches, positions

    # Acquiring.

    def _acquire(self, found: _Found, records_max: int) -> tuple[ShareFetched, "Future[None]"]:
        hold_ms = self.terms.hold_ms
        if found.parked:
            acquired, written = found.led.acquire_parked(
                self.member_id, _presence(found), records_max=records_max, hold_ms=hold_ms
            )
        else:
            acquired, written = found.led.acquire(
                self.member_id,
                found.offset,
                found.batches,
                records_max=records_max,
                batch_size=self.terms.batch_size,
                hold_ms=hold_ms,
            )
        if not acquired:
            if found.parked or found.led.fetch_offset() != found.offset:
                self._news.set()  # Skipped records made room for more.
            return ShareFetched(b"", ()), written
        return ShareFetched(_content_of(found, acquired), acquired), written


def _is_for_a_thread(wanted: _Wanted) -> bool:
    """Parked records may be anywhere in the log, and examining keys takes a while."""
    return bool(wanted.parked) or wanted.in_order


def _validate_plain(content: bytes) -> None:
    """NotCached if records must be decompressed to examine their delivery times."""
    if any(header.compression for _, header in iterate_headers(content)):
        raise NotCached


def _presence(found: _Found) -> Iterator[tuple[int, bool]]:
    """The offsets of the parked records, and whether a batch contains them."""
    batches = iter(found.batches)
    batch = next(batches, None)
    for offset in found.parked:
        while batch is not None and batch.last_offset < offset:
            batch = next(batches, None)
        yield offset, batch is not None and batch.first_offset <= offset


def _content_of(found: _Found, acquired: Sequence[AcquiredRange]) -> bytes:
    """The content from the first batch with an acquired record to the last.

    For parked records the content has only the requested batches, which need not be adjacent.
    """
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    inside = [
        index
        for index, batch in enumerate(found.batches)
        if batch.last_offset >= first and batch.first_offset <= last
    ]
    return found.content[found.positions[inside[0]] : found.positions[inside[-1] + 1]]


class _Aborted:
    """Tells which batches belong to aborted transactions; call in log order."""

    def __init__(self, partition: Partition, content: bytes) -> None:
        headers = [header for _, header in iterate_headers(content)]
        self._coming = []
        if headers:
            found = partition.log.aborted_transactions(
                headers[0].base_offset, headers[-1].next_offset
            )
            self._coming = [(each.first_offset, each.producer_id) for each in reversed(found)]
        self._open: set[int] = set()

    def has(self, header: BatchHeader, content: bytes, position: int) -> bool:
        while self._coming and self._coming[-1][0] <= header.last_offset:
            self._open.add(self._coming.pop()[1])
        if header.is_control:
            marker = next((parse_marker(each) for each in iterate_records(content, position)), None)
            if marker is not None and marker.type is ControlType.ABORT:
                self._open.discard(header.producer_id)
        return header.is_transactional and header.producer_id in self._open
