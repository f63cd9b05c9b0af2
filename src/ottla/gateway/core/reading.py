"""Committed records of one partition, from an offset or a time."""

import asyncio
import contextlib
from typing import Final, NamedTuple

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.reading import fetch, list_offsets
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.fetching import Fetched
from ottla.client.wire.offsets import LATEST, Isolation
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.core.topic_names import validate_partition, validate_topic
from ottla.gateway.settings import GatewaySettings
from ottla.records.builder import Record
from ottla.records.decoder import iterate_records
from ottla.records.isolation import scan_batches

_COMMITTED: Final = Isolation.READ_COMMITTED
_NO_END: Final = 2**63 - 1


class Records(NamedTuple):
    records: list[Record]
    next_offset: int  # Where to continue.
    log_start_offset: int
    high_watermark: int


class Reader:
    def __init__(
        self, settings: GatewaySettings, cluster: Cluster, stopping: asyncio.Event
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._stopping = stopping
        self._waiting_count = 0

    async def offset_at(self, topic_partition: TopicPartition, time_ms: int) -> int:
        """The first offset at or after the time, or the end; EARLIEST and LATEST count as times."""
        await self._validate(topic_partition)
        offsets = await list_offsets(self._cluster, {topic_partition: time_ms}, _COMMITTED)
        found = offsets[topic_partition]
        return await self.offset_at(topic_partition, LATEST) if found is None else found

    async def read(
        self, topic_partition: TopicPartition, offset: int, *, count_max: int, wait_ms: int = 0
    ) -> Records:
        """Up to `count_max` records; waits for the first. Raises OffsetOutOfRange."""
        await self._validate(topic_partition)
        found = await self._cluster.retry(
            lambda: self._fetch(topic_partition, offset, count_max, 0)
        )
        if found.records or not wait_ms:
            return found
        if self._waiting_count >= self._settings.waiting_reads_max:
            raise TooBusy("too many requests wait for records")
        self._waiting_count += 1
        try:
            return await self._wait(topic_partition, found, count_max, wait_ms)
        finally:
            self._waiting_count -= 1

    async def _validate(self, topic_partition: TopicPartition) -> None:
        """Report a missing topic or partition at once, without retries."""
        validate_topic(topic_partition.topic)
        validate_partition(topic_partition, await self._cluster.topic(topic_partition.topic))

    async def _wait(
        self, topic_partition: TopicPartition, empty: Records, count_max: int, wait_ms: int
    ) -> Records:
        reading = asyncio.ensure_future(
            self._cluster.retry(
                lambda: self._fetch(topic_partition, empty.next_offset, count_max, wait_ms)
            )
        )
        stopped = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait({reading, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return await reading if reading.done() else empty
        finally:
            for task in (reading, stopped):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    async def _fetch(
        self, topic_partition: TopicPartition, offset: int, count_max: int, wait_ms: int
    ) -> Records:
        if not wait_ms:
            connection = await self._cluster.leader(topic_partition)
        else:
            connection = await self._cluster.own_connection_to_leader(topic_partition)
        try:
            found = await fetch(
                self._cluster,
                connection,
                topic_partition,
                offset,
                _COMMITTED,
                bytes_max=self._settings.read_bytes_max,
                wait_ms=wait_ms,
            )
        finally:
            if wait_ms:
                connection.close()
        records, next_offset = _decode(found, offset, count_max)
        return Records(records, next_offset, found.log_start_offset, found.high_watermark)


def _decode(found: Fetched, offset: int, count_max: int) -> tuple[list[Record], int]:
    """Up to `count_max` records from the offset, and where to continue."""
    scan = scan_batches(found.records, offset, _NO_END, found.aborted)
    records: list[Record] = []
    for batch in scan.batches:
        for record in iterate_records(found.records, batch.position, from_offset=offset):
            if len(records) == count_max:
                return records, record.offset
            records.append(record)
    return records, scan.next_offset
