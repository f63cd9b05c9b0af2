"""Sends one task's rows to their partitions.

Rows are collected into portions, sorted by partition and encoded; a thread sends one portion while
the next is built. Batches carry sequence numbers, so a resent batch is written once.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.producing import Producer, add_partitions, produce
from ottla.records.batch import SEQUENCE_MAX
from ottla.records.columnar.encoder import EncodedBatch, Stretch, Writing, encode_stretches
from pyspark_ottla.cluster_pool import borrow
from pyspark_ottla.sink.columns import Portion
from pyspark_ottla.sink.options import SinkOptions
from pyspark_ottla.sink.partitioner import choose_partitions

_PORTION_BYTES = 8 * 1024 * 1024
_PORTION_ROWS = 128 * 1024

Batches = dict[TopicPartition, list[EncodedBatch]]


def portions(batches: Iterable[Any]) -> Iterator[Portion]:
    gathered: list[Any] = []
    size = rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        gathered.append(batch)
        size += batch.nbytes
        rows += batch.num_rows
        if size >= _PORTION_BYTES or rows >= _PORTION_ROWS:
            yield Portion.of_batches(gathered)
            gathered, size, rows = [], 0, 0
    if gathered:
        yield Portion.of_batches(gathered)


class TaskProducer:
    """Asks over the given connections and sends over its own, as the given producer.

    `write` may return before the rows are written; they are once the `with` block has ended. Their
    partitions are in the transaction when it returns.
    """

    def __init__(
        self,
        options: SinkOptions,
        cluster: Cluster,
        producer: Producer,
        *,
        transactional_id: str | None = None,
        added: frozenset[TopicPartition] = frozenset(),
        first_partition: int = 0,
    ) -> None:
        """`added` are the partitions already in the transaction."""
        self._topic = options.topic
        self._transactional_id = transactional_id
        self._producer = producer
        self._writing = Writing(
            compression=options.compression,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transactional=transactional_id is not None,
        )
        self._asking = cluster
        self._borrowed = ExitStack()
        self._sending = self._borrowed.enter_context(borrow(options.cluster))
        self._sending.learn_from(cluster)
        self._thread = ThreadPoolExecutor(1)
        self._under_way: Future[None] | None = None
        self._sticky = first_partition
        self._counts: dict[str, int] = {}  # Partition count by topic.
        self._sequences: dict[TopicPartition, int] = {}
        self._added = set(added)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            with self._borrowed, self._thread:
                self._wait()
        else:
            self._thread.shutdown()
            self._borrowed.__exit__(kind, error, trace)

    def write(self, portion: Portion) -> None:
        """Raises NoSuchPartition or ColumnError for rows that cannot be written."""
        batches: Batches = {}
        for topic, rows in portion.by_topic(self._topic).items():
            batches |= self._encode(topic, rows)
        self._sticky += 1
        self._add(batches.keys() - self._added)
        self._wait()
        self._under_way = self._thread.submit(self._send, batches)

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """Partitions written to."""
        return frozenset(self._sequences)

    def _wait(self) -> None:
        if self._under_way is not None:
            under_way, self._under_way = self._under_way, None
            under_way.result()

    def _encode(self, topic: str, portion: Portion) -> Batches:
        partitions = choose_partitions(
            topic,
            portion.column("key"),
            portion.column("partition"),
            self._count(topic),
            self._sticky,
            portion.rows,
        )
        if partitions[0] != partitions[-1] or (partitions != partitions[0]).any():
            order = np.argsort(partitions, kind="stable")
            portion, partitions = portion.take(pa.array(order)), partitions[order]
        starts = [0, *(np.flatnonzero(np.diff(partitions)) + 1).tolist()]
        topic_partitions = [TopicPartition(topic, int(partitions[start])) for start in starts]
        stretches = [
            Stretch(start, self._sequences.get(topic_partition, 0))
            for start, topic_partition in zip(starts, topic_partitions, strict=True)
        ]
        encoded: Batches = {topic_partition: [] for topic_partition in topic_partitions}
        for index, batch in encode_stretches(portion.records(), stretches, self._writing):
            topic_partition = topic_partitions[index]
            encoded[topic_partition].append(batch)
            sequence = self._sequences.get(topic_partition, 0)
            self._sequences[topic_partition] = (sequence + batch.rows) & SEQUENCE_MAX
        return encoded

    def _count(self, topic: str) -> int:
        if topic not in self._counts:
            self._counts[topic] = len(self._asking.topic_to_write(topic).leaders)
        return self._counts[topic]

    def _send(self, batches: Batches) -> None:
        """Runs in the thread."""
        for index in range(max(map(len, batches.values()))):
            round_of_batches = {
                topic_partition: queue[index].data
                for topic_partition, queue in batches.items()
                if index < len(queue)
            }
            produce(self._sending, round_of_batches, self._transactional_id)

    def _add(self, topic_partitions: set[TopicPartition]) -> None:
        if self._transactional_id is not None and topic_partitions:
            add_partitions(self._asking, self._transactional_id, self._producer, topic_partitions)
            self._added |= topic_partitions
