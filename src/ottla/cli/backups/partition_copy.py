"""Copies partitions from one cluster into topics of another one that take imports."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.cli.backups.importing import ImportRun, OnCopied
from ottla.cli.backups.parallel import Patience, wire_cluster
from ottla.cli.backups.source_batches import source_batches
from ottla.cli.connection import Connection
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import WireError
from ottla.client.wire.fetching import Fetcher
from ottla.client.wire.offsets import EARLIEST, Isolation, list_offsets


class Clusters:
    """Connections to both clusters, for each thread its own."""

    def __init__(self, source: Connection, target: Connection) -> None:
        self._source = source
        self._target = target
        self._of_thread = threading.local()
        self._guard = threading.Lock()
        self._all: list[Cluster] = []

    @contextmanager
    def both(self) -> Iterator[tuple[Cluster, Cluster]]:
        pair = getattr(self._of_thread, "pair", None)
        if pair is None:
            pair = self._of_thread.pair = wire_cluster(self._source), wire_cluster(self._target)
            with self._guard:
                self._all.extend(pair)
        yield pair

    def close(self) -> None:
        for cluster in self._all:
            cluster.close()


def copy_partition(
    clusters: Clusters, topic_partition: TopicPartition, end_offset: int, on_copied: OnCopied
) -> int:
    """Up to the offset, at which no transaction is open; returns where the target's log ends.

    What may pass is tried again, for a minute without progress.
    """
    patience = Patience()
    while True:
        copied: list[int] = []

        def count(offsets: int, size: int, copied: list[int] = copied) -> None:
            copied.append(offsets)
            on_copied(offsets, size)

        with clusters.both() as (source, target):
            try:
                return _copy(source, target, topic_partition, end_offset, count)
            except WireError as error:
                source.forget()
                target.forget()
                patience.wait(error, progressed=any(copied))


def _copy(
    source: Cluster,
    target: Cluster,
    topic_partition: TopicPartition,
    end_offset: int,
    on_copied: OnCopied,
) -> int:
    start = list_offsets(source, {topic_partition: EARLIEST})[topic_partition] or 0
    with (
        ImportRun(target, topic_partition) as importing,
        Fetcher(source, topic_partition, Isolation.READ_COMMITTED) as fetcher,
    ):
        offset = importing.begin(start, end_offset)
        offset = max(offset, start)  # Retention may have overtaken us.
        if offset >= end_offset:
            importing.finish(end_offset)
            return end_offset
        for found in source_batches(fetcher, topic_partition, offset, end_offset):
            if found.records:
                importing.write(found.records, found.next_offset)
            on_copied(found.next_offset - offset, len(found.records))
            offset = found.next_offset
        importing.finish(end_offset)
    return end_offset
