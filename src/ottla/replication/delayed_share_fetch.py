"""A share fetch that waits until there is something to acquire.

The log is read first and records are acquired from what was read, so that no record is locked for
a consumer whose answer is still waiting for the disk. Between the two other consumers may have
taken some: then it is looked at again.
"""

import asyncio
from asyncio import AbstractEventLoop
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

from ottla.groups.partitions import TopicIdPartition
from ottla.groups.share.taking import AcquiredRange, LogBatch
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import BatchHeader, iterate_headers
from ottla.records.decoder import ControlType, iterate_records, parse_marker
from ottla.replication.partition import Partition
from ottla.replication.share_partitions import LedSharePartition
from ottla.storage.errors import StorageError


@dataclass(frozen=True, slots=True)
class ShareFetchTerms:
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    records_max: int
    batch_size: int | None  # Records of an acquired range; None if `records_max` cuts batches.
    committed_only: bool


class ShareFetched(NamedTuple):
    records: bytes  # Whole batches, from the first acquired one to the last.
    acquired: tuple[AcquiredRange, ...]


class _Found(NamedTuple):
    place: TopicIdPartition
    led: LedSharePartition
    offset: int
    content: bytes
    batches: list[LogBatch]
    positions: list[int]  # Of the batches in the content, and its end.


class DelayedShareFetch:
    def __init__(
        self,
        member_id: str,
        partitions: Mapping[TopicIdPartition, LedSharePartition],
        terms: ShareFetchTerms,
        loop: AbstractEventLoop,
        executor: Executor,
    ) -> None:
        self.errors: dict[TopicIdPartition, ApiError] = {}
        self._member_id = member_id
        self._partitions = partitions
        self._terms = terms
        self._loop = loop
        self._executor = executor
        self._news = asyncio.Event()
        self._abandoned = False

    def abandon(self) -> None:
        """Nobody waits for it any more: acquire nothing."""
        self._abandoned = True
        self._news.set()

    async def run(self) -> dict[TopicIdPartition, ShareFetched]:
        deadline = self._loop.time() + self._terms.max_wait_ms / 1000
        for led in self._partitions.values():
            led.wait(self._news.set)
        try:
            while True:
                self._news.clear()
                last = self._loop.time() >= deadline
                fetched = await self._try(at_any_size=last)
                if fetched or self.errors or last or self._abandoned or not self._partitions:
                    return fetched
                await self._wait_until(deadline)
        finally:
            for led in self._partitions.values():
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
        if self._abandoned or (size < self._terms.min_bytes and not at_any_size):
            return {}
        fetched: dict[TopicIdPartition, ShareFetched] = {}
        left = self._terms.records_max
        for each in found:
            if left <= 0:
                break
            try:
                taken = self._acquire(each, left)
            except ApiError as error:
                self.errors[each.place] = error.with_traceback(None)
                continue
            if taken is not None:
                fetched[each.place] = taken
                left -= sum(last - first + 1 for first, last, _ in taken.acquired)
        return fetched

    # Reading.

    async def _read_all(self) -> list[_Found]:
        """Nothing of partitions that have nothing to give."""
        wanted = []
        for place, led in self._partitions.items():
            try:
                offset = led.fetch_offset()
            except ApiError as error:
                self.errors[place] = error.with_traceback(None)
                continue
            if offset is not None and offset < self._limit(led.partition):
                wanted.append((place, led, offset))
        if not wanted:
            return []
        return await self._loop.run_in_executor(self._executor, self._read, wanted)

    def _limit(self, partition: Partition) -> int:
        log = partition.log
        if self._terms.committed_only:
            return log.last_stable_offset(log.high_watermark)
        return log.high_watermark

    def _read(
        self, wanted: Iterable[tuple[TopicIdPartition, LedSharePartition, int]]
    ) -> list[_Found]:
        """In a thread."""
        found: list[_Found] = []
        room = self._terms.max_bytes
        for place, led, offset in wanted:
            if room <= 0:
                break
            try:
                content = self._read_one(led.partition, offset, room)
            except ApiError as error:
                self.errors[place] = error.with_traceback(None)
                continue
            if found and len(content) > room:
                continue
            room -= len(content)
            batches, positions = self._batches(led.partition, content)
            found.append(_Found(place, led, offset, content, batches, positions))
        return found

    def _read_one(self, partition: Partition, offset: int, size_max: int) -> bytes:
        part = partition.read(offset, size_max, committed_only=self._terms.committed_only)
        try:
            return b"" if part is None else part.read()
        except (OSError, StorageError) as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error

    def _batches(self, partition: Partition, content: bytes) -> tuple[list[LogBatch], list[int]]:
        batches, positions = [], []
        aborted = _Aborted(partition, content) if self._terms.committed_only else None
        for position, header in iterate_headers(content):
            deliverable = header.records_count > 0 and not header.is_control
            if aborted is not None and aborted.has(header, content, position):
                deliverable = False
            batches.append(LogBatch(header.base_offset, header.last_offset, deliverable))
            positions.append(position)
        positions.append(len(content))
        return batches, positions

    # Acquiring.

    def _acquire(self, found: _Found, records_max: int) -> ShareFetched | None:
        acquired = found.led.acquire(
            self._member_id,
            found.offset,
            found.batches,
            records_max=records_max,
            batch_size=self._terms.batch_size,
        )
        if not acquired:
            if found.led.fetch_offset() != found.offset:
                self._news.set()  # What was passed over made way for more.
            return None
        first, last = acquired[0].first_offset, acquired[-1].last_offset
        inside = [
            index
            for index, batch in enumerate(found.batches)
            if batch.last_offset >= first and batch.first_offset <= last
        ]
        start, end = found.positions[inside[0]], found.positions[inside[-1] + 1]
        return ShareFetched(found.content[start:end], acquired)


class _Aborted:
    """Which batches belong to transactions that were aborted, asked in the order of the log."""

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
