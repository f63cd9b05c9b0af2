"""A small table shared by all gateways of a cluster: a compacted topic with one partition.

Each gateway has a copy, which it refreshes before decisions that depend on it. The last write of a
key wins, so repeating a write changes nothing.
"""

import asyncio
import time
from collections.abc import Iterator
from typing import Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.producing import produce
from ottla.client.async_wire.reading import fetch_committed, list_offsets
from ottla.client.async_wire.topics import ensure_topic
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.offsets import EARLIEST, LATEST
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import iterate_records

CONFIG: Final = {"cleanup.policy": "compact", "segment.ms": "3600000"}


class CompactedTable:
    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._topic_partition = TopicPartition(topic, 0)
        self._values: dict[str, bytes] = {}
        self._next_offset: int | None = None  # None: not read yet.
        self._read_at = 0.0
        self._reading = asyncio.Lock()

    def get(self, key: str) -> bytes | None:
        return self._values.get(key)

    def items(self) -> Iterator[tuple[str, bytes]]:
        return iter(list(self._values.items()))

    async def refresh(self, age_s_max: float = 0.0) -> None:
        """Include everything written before this call, or up to `age_s_max` before it."""
        asked_at = time.monotonic()
        if self._next_offset is not None and asked_at - self._read_at < age_s_max:
            return
        async with self._reading:
            if self._next_offset is not None and self._read_at >= asked_at:
                return  # Another caller's refresh started after this call.
            begun_at = time.monotonic()
            await self._read_to_end()
            self._read_at = begun_at

    async def put(self, key: str, value: bytes | None) -> None:
        """Returns once the value is written and in this copy; None removes the key."""
        await ensure_topic(self._cluster, self._topic, partitions=1, config=CONFIG)
        record = Record(timestamp=time.time_ns() // 1_000_000, key=key.encode(), value=value)
        await produce(self._cluster, {self._topic_partition: build_batch([record])})
        await self.refresh()

    async def _read_to_end(self) -> None:
        if self._topic not in await self._cluster.topics([self._topic]):
            self._values.clear()
            self._next_offset = 0
            return
        ends = await list_offsets(self._cluster, {self._topic_partition: LATEST})
        end_offset = ends[self._topic_partition] or 0
        if self._next_offset is None or self._next_offset > end_offset:
            starts = await list_offsets(self._cluster, {self._topic_partition: EARLIEST})
            self._values.clear()
            self._next_offset = starts[self._topic_partition] or 0
        while self._next_offset < end_offset:
            before = self._next_offset
            await self._read_some(before)
            if self._next_offset == before:  # Nothing is left to read.
                self._next_offset = end_offset

    async def _read_some(self, offset: int) -> None:
        found = await fetch_committed(self._cluster, self._topic_partition, offset)
        content = bytes(found.records)
        for position, header in iterate_headers(content):
            if header.last_offset < offset:
                continue
            if not header.is_control:
                for record in iterate_records(content, position):
                    self._apply(record)
            self._next_offset = header.last_offset + 1

    def _apply(self, record: Record) -> None:
        if record.key is None:
            return
        key = record.key.decode(errors="replace")
        if record.value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = record.value
