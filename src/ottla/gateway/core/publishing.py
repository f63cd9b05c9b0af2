"""Publishes records: each to its partition, in batches shared by callers.

The queue of unacknowledged records is bounded by count and bytes; TooBusy when it is full.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Final

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.cluster import NO_LEADER, Topic, TopicPartition
from ottla.client.wire.errors import BrokerError, WireError
from ottla.client.wire.partitioner import partition_of
from ottla.gateway.core.counts import Counts
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.core.partition_writer import (
    BATCH_BYTES_MAX,
    Acks,
    PartitionWriter,
    ProducerIdentity,
    Published,
    Submission,
)
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.core.topic_names import validate_topic
from ottla.gateway.settings import GatewaySettings
from ottla.records.builder import NO_OFFSET, Record

_CREATION_TRIES: Final = 6
_CREATION_PAUSE_S: Final = 0.25
_FULL_PAUSE_S: Final = 0.005
_RECORD_OVERHEAD_BYTES: Final = 32  # Lengths, deltas and so on.
_WRITERS_MAX: Final = 10_000  # Above this, idle ones are dropped.
_NOT_YET: Final = WireError("no report yet")


class Publisher:
    def __init__(
        self, settings: GatewaySettings, cluster: Cluster, counts: Counts | None = None
    ) -> None:
        """The cluster's connections wait for acknowledgements: do not share it."""
        self._counts = counts or Counts()
        self._settings = settings
        self._cluster = cluster
        self._identity = ProducerIdentity(cluster)
        self._writers: dict[tuple[TopicPartition, Acks], PartitionWriter] = {}
        self._current: dict[tuple[str, Acks], int] = {}  # Partitions of keyless records.
        self.queued_records = 0
        self.queued_bytes = 0
        self._quiet = asyncio.Event()  # Nothing is queued.
        self._quiet.set()

    async def topic(self, name: str) -> Topic:
        """The topic, created if missing and the cluster auto-creates topics.

        Raises UNKNOWN_TOPIC_OR_PARTITION if there is still none.
        """
        validate_topic(name)
        for attempt in range(1, _CREATION_TRIES + 1):
            try:
                return await self._cluster.topic_to_write(name)
            except BrokerError as error:
                if not error.may_pass or attempt == _CREATION_TRIES:
                    raise
            await asyncio.sleep(_CREATION_PAUSE_S)
        raise AssertionError

    async def publish(self, topic: str, record: NewRecord, acks: Acks = Acks.ALL) -> Published:
        """Returns once acknowledged. Raises WireError; TooBusy if the queue is full."""
        return await self._submit(topic, await self.topic(topic), record, acks)

    async def publish_patiently(
        self, topic: str, record: NewRecord, acks: Acks = Acks.ALL
    ) -> "asyncio.Future[Published]":
        """Wait for room in the queue, then return the record's report."""
        known = await self.topic(topic)
        while True:
            try:
                report = self._submit(topic, known, record, acks)
            except TooBusy:
                await asyncio.sleep(_FULL_PAUSE_S)
            else:
                return report

    async def publish_all(
        self, topic: str, records: Sequence[NewRecord], acks: Acks = Acks.ALL
    ) -> list[Published | Exception]:
        """One outcome per record; TooBusy for those that do not fit into the queue."""
        known = await self.topic(topic)
        now_ms = time.time_ns() // 1_000_000
        submitted: list[tuple[list[int], Submission]] = []
        outcomes: list[Published | Exception] = [_NOT_YET] * len(records)
        for partition, indexes in self._spread(topic, known, records, acks).items():
            writer = self._writer(TopicPartition(topic, partition), acks)
            for chunk, size in _chunks(records, indexes):
                submission = Submission(_records(records, chunk, now_ms), size)
                try:
                    self._admit(submission)
                except TooBusy as error:
                    for index in chunk:
                        outcomes[index] = error
                    continue
                writer.write(submission)
                submitted.append((chunk, submission))
        if submitted:  # `wait`, because cancelling the caller must not cancel the submissions.
            await asyncio.wait([submission.outcomes for _, submission in submitted])
        for chunk, submission in submitted:
            found = submission.outcomes.result()
            if len(found) == len(records):  # Usually all are in one batch.
                return list(found)
            for index, outcome in zip(chunk, found, strict=True):
                outcomes[index] = outcome
        return outcomes

    async def close(self) -> None:
        """Returns when everything is acknowledged or has failed."""
        await self._quiet.wait()
        self._cluster.close()

    def _submit(
        self, topic: str, known: Topic, record: NewRecord, acks: Acks
    ) -> "asyncio.Future[Published]":
        now_ms = time.time_ns() // 1_000_000
        submission = Submission(_records([record], [0], now_ms), _size(record))
        self._admit(submission)
        (partition,) = self._spread(topic, known, [record], acks)
        self._writer(TopicPartition(topic, partition), acks).write(submission)
        report: asyncio.Future[Published] = asyncio.get_running_loop().create_future()

        def tell(outcomes: "asyncio.Future[Sequence[Published | WireError]]") -> None:
            if report.done():  # Nobody waits for it.
                return
            (outcome,) = outcomes.result()
            if isinstance(outcome, Published):
                report.set_result(outcome)
            else:
                report.set_exception(outcome)

        submission.outcomes.add_done_callback(tell)
        return report

    def _spread(
        self, topic: str, known: Topic, records: Sequence[NewRecord], acks: Acks
    ) -> dict[int, list[int]]:
        """Record indexes by partition."""
        spread: dict[int, list[int]] = {}
        keyless: list[int] = []
        for index, (_, key, partition, _, _) in enumerate(records):
            if partition is not None:
                spread.setdefault(partition, []).append(index)
            elif key is not None:
                spread.setdefault(partition_of(key, len(known.leaders)), []).append(index)
            else:
                keyless.append(index)
        if keyless:
            partition = self._partition_without_key(topic, known, acks)
            spread[partition] = sorted(spread.get(partition, []) + keyless)
        return spread

    def _partition_without_key(self, topic: str, known: Topic, acks: Acks) -> int:
        """The partition whose batch is being filled, or any with a leader (KIP-480)."""
        current = self._current.get((topic, acks))
        if current is not None:
            writer = self._writers.get((TopicPartition(topic, current), acks))
            if writer is not None and writer.is_filling:
                return current
        led = [partition for partition, leader in known.leaders.items() if leader != NO_LEADER]
        partition = random.choice(led or list(known.leaders))
        if len(self._current) >= _WRITERS_MAX:
            self._current.clear()
        self._current[topic, acks] = partition
        return partition

    def _writer(self, topic_partition: TopicPartition, acks: Acks) -> PartitionWriter:
        writer = self._writers.get((topic_partition, acks))
        if writer is None:
            if len(self._writers) >= _WRITERS_MAX:
                self._forget_idle_writers()
            timeout_ms = self._settings.publish_timeout_ms
            writer = PartitionWriter(
                self._cluster, self._identity, topic_partition, acks, timeout_ms
            )
            self._writers[topic_partition, acks] = writer
        return writer

    def _forget_idle_writers(self) -> None:
        """Their sequence numbers are lost, so their successors use another producer."""
        self._writers = {key: each for key, each in self._writers.items() if not each.is_idle}
        self._identity = ProducerIdentity(self._cluster)

    def _admit(self, submission: Submission) -> None:
        """A submission larger than the queue is admitted when the queue is empty."""
        count = len(submission.records)
        if self.queued_records and (
            self.queued_records + count > self._settings.queue_records_max
            or self.queued_bytes + submission.size > self._settings.queue_bytes_max
        ):
            raise TooBusy("the queue of records that wait for the brokers is full")
        self.queued_records += count
        self.queued_bytes += submission.size
        self._quiet.clear()
        submission.outcomes.add_done_callback(lambda done: self._release(done, submission.size))

    def _release(self, done: "asyncio.Future[Sequence[Published | WireError]]", size: int) -> None:
        outcomes = done.result()
        failed = sum(type(outcome) is not Published for outcome in outcomes)
        self._counts.published += len(outcomes) - failed
        self._counts.unpublished += failed
        self.queued_records -= len(outcomes)
        self.queued_bytes -= size
        if not self.queued_records:
            self._quiet.set()


def _records(records: Sequence[NewRecord], indexes: Sequence[int], now_ms: int) -> list[Record]:
    chosen = records if len(indexes) == len(records) else [records[index] for index in indexes]
    return [
        Record(NO_OFFSET, timestamp_ms or now_ms, key, value, headers)
        for value, key, _, headers, timestamp_ms in chosen
    ]


def _size(record: NewRecord) -> int:
    value, key, _, headers, _ = record
    size = _RECORD_OVERHEAD_BYTES
    if value is not None:
        size += len(value)
    if key is not None:
        size += len(key)
    for name, header_value in headers:
        size += len(name) + len(header_value or b"") + 2
    return size


def _chunks(records: Sequence[NewRecord], indexes: list[int]) -> list[tuple[list[int], int]]:
    """Split into batch-sized chunks, with their sizes."""
    sizes = [_size(records[index]) for index in indexes]
    total = sum(sizes)
    if total <= BATCH_BYTES_MAX:
        return [(indexes, total)]
    chunks: list[tuple[list[int], int]] = []
    chunk: list[int] = []
    chunk_size = 0
    for index, size in zip(indexes, sizes, strict=True):
        if chunk and chunk_size + size > BATCH_BYTES_MAX:
            chunks.append((chunk, chunk_size))
            chunk, chunk_size = [], 0
        chunk.append(index)
        chunk_size += size
    return [*chunks, (chunk, chunk_size)]
