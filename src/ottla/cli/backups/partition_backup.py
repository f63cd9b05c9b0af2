"""Copies one partition into a store, from where the last run ended."""

import hashlib
from collections.abc import Iterator
from typing import Final

from ottla.cli.backups.importing import OnCopied
from ottla.cli.backups.manifest import Chunk, PartitionManifest, chunk_name
from ottla.cli.backups.source_batches import source_batches
from ottla.cli.backups.store import FileWriter, Store
from ottla.cli.backups.whole_batches import WholeBatches
from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.fetching import BYTES_MAX, Fetcher
from ottla.client.wire.offsets import Isolation

CHUNK_BYTES: Final = 64 << 20  # What an interruption costs at most, for each partition.


class PartitionBackup:
    """Up to `end_offset`, at which no transaction is open."""

    def __init__(
        self,
        store: Store,
        path: str,
        topic_partition: TopicPartition,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        fetch_bytes_max: int = BYTES_MAX,
    ) -> None:
        self._store = store
        self._path = path
        self._topic_partition = topic_partition
        self._chunk_bytes = chunk_bytes
        self._fetch_bytes_max = fetch_bytes_max
        self._writer: FileWriter | None = None

    def run(
        self, cluster: Cluster, log_start_offset: int, end_offset: int, on_copied: OnCopied
    ) -> int:
        """How many offsets retention removed before they were copied."""
        manifest = PartitionManifest.load(self._store, self._path)
        if manifest is None:
            manifest = PartitionManifest(log_start_offset, log_start_offset)
            manifest.save(self._store, self._path)
        if end_offset < manifest.end_offset:
            raise CommandError(
                f"{self._topic_partition} ends at {end_offset}, the backup at"
                f" {manifest.end_offset}: records that were copied are gone"
                " from the cluster; begin another backup elsewhere"
            )
        lost = max(log_start_offset - manifest.end_offset, 0)
        offset = manifest.end_offset + lost
        on_copied(lost, 0)
        try:
            with self._fetcher(cluster) as fetcher:
                source = source_batches(fetcher, self._topic_partition, offset, end_offset)
                self._copy(source, manifest, offset, on_copied)
        finally:
            if self._writer is not None:
                self._writer.discard()
        if manifest.end_offset != end_offset:
            # The rest are offsets without records.
            manifest.end_offset = end_offset
            manifest.save(self._store, self._path)
        return lost

    def _fetcher(self, cluster: Cluster) -> Fetcher:
        isolation = Isolation.READ_COMMITTED
        return Fetcher(cluster, self._topic_partition, isolation, bytes_max=self._fetch_bytes_max)

    def _copy(
        self,
        source: Iterator[WholeBatches],
        manifest: PartitionManifest,
        offset: int,
        on_copied: OnCopied,
    ) -> None:
        digest, size, start_offset = hashlib.sha256(), 0, offset
        for batches, next_offset, _ in source:
            if batches:
                if self._writer is None:
                    digest, size, start_offset = hashlib.sha256(), 0, offset
                    self._writer = self._store.writer(f"{self._path}/{chunk_name(offset)}")
                self._writer.write(batches)
                digest.update(batches)
                size += len(batches)
            on_copied(next_offset - offset, len(batches))
            offset = next_offset
            if size >= self._chunk_bytes:
                self._commit(manifest, Chunk.of(start_offset, offset, size, digest.hexdigest()))
                size = 0
        if self._writer is not None:
            self._commit(manifest, Chunk.of(start_offset, offset, size, digest.hexdigest()))

    def _commit(self, manifest: PartitionManifest, chunk: Chunk) -> None:
        if self._writer is None:
            return
        self._writer.commit()
        self._writer = None
        manifest.chunks.append(chunk)
        manifest.end_offset = chunk.next_offset
        manifest.save(self._store, self._path)
