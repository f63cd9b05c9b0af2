"""Dead letters: records that share groups gave up on, to inspect and to redrive.

A letter is redriven by copying it to its original topic and partition. A log loses records only at
its start, so a single redriven letter stays and is marked in a table that the gateways share; when
all are redriven, the dead-letter topic is deleted up to where they went. A crash in between may
redrive a letter twice, but never loses one.
"""

import json
import time
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.configs import ResourceType
from ottla.client.async_wire.producing import produce
from ottla.client.async_wire.reading import fetch_committed
from ottla.client.wire.cluster import TopicPartition
from ottla.gateway.core.administration import Administration
from ottla.gateway.core.compacted_table import CompactedTable
from ottla.gateway.core.errors import Invalid
from ottla.gateway.core.groups import SHARE, Groups
from ottla.records.batch import iterate_headers
from ottla.records.builder import Headers, Record, build_batch
from ottla.records.decoder import iterate_records
from ottla.records.deliver_at import DELIVER_AT

PREFIX: Final = "dlq."
TABLE: Final = "__gateway_dead_letters"
TOPIC_CONFIG: Final = "errors.deadletterqueue.topic.name"

_HEADER_PREFIX: Final = "__dlq.errors."
_BATCH_MAX: Final = 500
_READ_BYTES: Final = 1 << 20


class Origin(NamedTuple):
    topic: str
    partition: int
    offset: int
    group: str
    delivery_count: int
    reason: str


class Letter(NamedTuple):
    partition: int  # In the dead-letter topic, like the offset.
    record: Record
    origin: Origin | None  # None: not written by a share group.
    redriven_ms: int | None  # Time of the last redrive.


class DeadLetters:
    def __init__(self, cluster: Cluster, administration: Administration, groups: Groups) -> None:
        self._cluster = cluster
        self._administration = administration
        self._groups = groups
        self._redriven = CompactedTable(cluster, TABLE)

    async def topics(self) -> dict[str, int]:
        """Existing dead-letter topics with their record counts."""
        existing = {topic.name: topic for topic in await self._administration.topics()}
        names = {name for name in existing if name.startswith(PREFIX)}
        for group in await self._groups.all(SHARE):
            configs = await self._administration.configs(
                ResourceType.GROUP, group.id, [TOPIC_CONFIG]
            )
            names |= {each.value for each in configs if each.value in existing}
        found = {}
        for name in sorted(names):
            spans = await self._administration.offsets(existing[name])
            found[name] = sum(span.end_offset - span.start_offset for span in spans.values())
        return found

    async def look(
        self, topic: str, *, partition: int | None = None, offset: int = 0, count: int = 100
    ) -> list[Letter]:
        """The first letters of each partition, or those of one partition from an offset on."""
        await self._redriven.refresh()
        description = await self._administration.topic(topic)
        spans = await self._administration.offsets(description)
        if partition is not None:
            if partition not in spans:
                raise Invalid(f"{topic} has no partition {partition}")
            spans = {partition: spans[partition]._replace(start_offset=offset)}
        found: list[Letter] = []
        for index, span in spans.items():
            topic_partition = TopicPartition(topic, index)
            async for record in self._records(topic_partition, span.start_offset, span.end_offset):
                if len(found) >= count:
                    return found
                found.append(self._letter(topic_partition, record))
        return found

    async def redrive_one(self, topic: str, partition: int, offset: int) -> Letter:
        """Also redrives a letter that was redriven before."""
        letters = await self.look(topic, partition=partition, offset=offset, count=1)
        if not letters or letters[0].record.offset != offset:
            raise Invalid(f"{topic}-{partition} has no record at offset {offset}")
        letter = letters[0]
        if letter.origin is None:
            raise Invalid(f"the record at {topic}-{partition} {offset} is not a dead letter")
        await self._send(letter.origin, [letter.record])
        now_ms = time.time_ns() // 1_000_000
        key = _key(TopicPartition(topic, partition), offset)
        await self._redriven.put(key, json.dumps({"redriven_ms": now_ms}).encode())
        return letter._replace(redriven_ms=now_ms)

    async def redrive_all(self, topic: str) -> int:
        """Redrive every letter not yet redriven; returns how many."""
        await self._redriven.refresh()
        description = await self._administration.topic(topic)
        spans = await self._administration.offsets(description)
        sent = 0
        for index, span in spans.items():
            topic_partition = TopicPartition(topic, index)
            batch: list[Letter] = []
            async for record in self._records(topic_partition, span.start_offset, span.end_offset):
                batch.append(self._letter(topic_partition, record))
                if len(batch) >= _BATCH_MAX:
                    sent += await self._redrive(topic_partition, batch)
                    batch.clear()
            sent += await self._redrive(topic_partition, batch)
        return sent

    async def _redrive(self, topic_partition: TopicPartition, letters: list[Letter]) -> int:
        """Stops at the first record that is not a letter: deletion removes all before an offset."""
        by_origin: dict[TopicPartition, list[Record]] = {}
        done_offset = None
        origins: dict[TopicPartition, Origin] = {}
        for letter in letters:
            if letter.origin is None:
                break
            done_offset = letter.record.offset + 1
            if letter.redriven_ms is None:
                target = TopicPartition(letter.origin.topic, letter.origin.partition)
                origins[target] = letter.origin
                by_origin.setdefault(target, []).append(letter.record)
        for target, records in by_origin.items():
            await self._send(origins[target], records)
        if done_offset is not None:
            await self._administration.delete_records(
                topic_partition.topic, {topic_partition.partition: done_offset}
            )
        for letter in letters:
            if letter.redriven_ms is not None:
                await self._redriven.put(_key(topic_partition, letter.record.offset), None)
        return sum(map(len, by_origin.values()))

    async def _send(self, origin: Origin, records: list[Record]) -> None:
        leaders = (await self._cluster.topic(origin.topic)).leaders
        partition = origin.partition if origin.partition in leaders else 0
        copies = [await self._copy(origin, record) for record in records]
        target = TopicPartition(origin.topic, partition)
        await produce(self._cluster, {target: build_batch(copies)})

    async def _copy(self, origin: Origin, record: Record) -> Record:
        headers = without_marks(record.headers)
        if record.key is None and record.value is None and not headers:
            return await self._original(origin_of(record.headers) or origin)
        now_ms = time.time_ns() // 1_000_000
        return Record(timestamp=now_ms, key=record.key, value=record.value, headers=headers)

    async def _original(self, origin: Origin) -> Record:
        """The original of a letter that only references its record."""
        topic_partition = TopicPartition(origin.topic, origin.partition)
        async for record in self._records(topic_partition, origin.offset, origin.offset + 1):
            if record.offset == origin.offset:
                now_ms = time.time_ns() // 1_000_000
                return record._replace(offset=-1, timestamp=now_ms)
        raise Invalid(
            f"the record of the dead letter, {topic_partition} at {origin.offset}, is gone"
        )

    async def _records(
        self, topic_partition: TopicPartition, offset: int, end_offset: int
    ) -> AsyncIterator[Record]:
        while offset < end_offset:
            found = await fetch_committed(
                self._cluster, topic_partition, offset, bytes_max=_READ_BYTES
            )
            content = bytes(found.records)
            before = offset
            for position, header in iterate_headers(content):
                if not header.is_control and header.last_offset >= offset:
                    for record in iterate_records(content, position):
                        if offset <= record.offset < end_offset:
                            yield record
                offset = max(offset, header.last_offset + 1)
            if offset == before:
                return

    def _letter(self, topic_partition: TopicPartition, record: Record) -> Letter:
        known = self._redriven.get(_key(topic_partition, record.offset))
        redriven_ms = None if known is None else json.loads(known)["redriven_ms"]
        return Letter(topic_partition.partition, record, origin_of(record.headers), redriven_ms)


def origin_of(headers: Headers) -> Origin | None:
    values = {
        name.removeprefix(_HEADER_PREFIX): (value or b"").decode(errors="replace")
        for name, value in headers
        if name.startswith(_HEADER_PREFIX)
    }
    try:
        return Origin(
            values["topic"],
            int(values["partition"]),
            int(values["offset"]),
            values.get("group", ""),
            int(values.get("delivery.count", "0")),
            values.get("message", ""),
        )
    except (KeyError, ValueError):
        return None


def without_marks(headers: Headers) -> Headers:
    """The headers from before the share group gave up on the record, which is due now."""
    return tuple(
        header
        for header in headers
        if not header[0].startswith(_HEADER_PREFIX) and header[0] != DELIVER_AT
    )


def _key(topic_partition: TopicPartition, offset: int) -> str:
    return f"{topic_partition.topic}/{topic_partition.partition}/{offset}"
