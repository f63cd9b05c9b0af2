"""An import of one partition: what restore and migrate do with the batches that they have."""

from collections.abc import Callable
from typing import Final, Self

from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.importing import Importer
from ottla.records.batch import iterate_headers
from ottla.records.builder import build_batch

REQUEST_BYTES: Final = 1 << 20  # A broker does nothing else while it appends a request.

OnCopied = Callable[[int, int], None]  # Offsets and bytes.


class ImportRun:
    """One try; after a WireError the next one asks where the log ends."""

    def __init__(self, cluster: Cluster, topic_partition: TopicPartition) -> None:
        self._topic_partition = topic_partition
        self._importer = Importer(cluster, topic_partition)
        self._next_offset = 0

    def __enter__(self) -> Self:
        self._importer.__enter__()
        return self

    def __exit__(self, failure: object, *rest: object) -> None:
        self._importer.__exit__(failure, *rest)

    def begin(self, log_start_offset: int, end_offset: int) -> int:
        """Where the log ends, and what is written next begins."""
        self._next_offset = self._importer.begin(log_start_offset)
        if self._next_offset > end_offset:
            raise CommandError(
                f"{self._topic_partition} ends at {self._next_offset} already, past {end_offset}"
            )
        return self._next_offset

    def write(self, batches: memoryview, next_offset: int) -> None:
        """Whole batches, the last of which ends before `next_offset`; in small requests."""
        start, offset, end, after = 0, self._next_offset, 0, self._next_offset
        for position, header in iterate_headers(batches):
            if end > start and position + header.size - start > REQUEST_BYTES:
                self._importer.write(batches[start:end], offset)
                start, offset = position, after
            end, after = position + header.size, header.next_offset
        if end > start:
            self._importer.write(batches[start:end], offset)
        assert after == next_offset, "the caller has counted them"
        self._next_offset = next_offset

    def finish(self, end_offset: int) -> None:
        """All is committed, and the next record will have `end_offset`."""
        if self._next_offset < end_offset:
            # The last offsets have no records, as after compaction; a batch says so.
            delta = end_offset - self._next_offset - 1
            empty = build_batch([], base_offset=self._next_offset, last_offset_delta=delta)
            self._importer.write(empty, self._next_offset)
            self._next_offset = end_offset
        self._importer.finish()
