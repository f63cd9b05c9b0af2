"""Writes the chunks of one partition into a topic that takes imports, from where its log ends."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.cli.backups.importing import ImportRun, OnCopied
from ottla.cli.backups.manifest import Chunk, PartitionManifest
from ottla.cli.backups.store import Store
from ottla.cli.backups.whole_batches import whole_batches
from ottla.cli.errors import CommandError
from ottla.client.wire.cluster import TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionRestore:
    store: Store
    path: str
    topic_partition: TopicPartition
    manifest: PartitionManifest
    end: int  # Where the run ended that is restored; chunks of later ones are left out.

    def run(self, importing: ImportRun, on_copied: OnCopied) -> None:
        """WireError; call it again with another import where that may pass."""
        offset = importing.begin(self.manifest.log_start_offset, self.end)
        on_copied(offset - self.manifest.log_start_offset, 0)
        for chunk in self.manifest.chunks:
            if offset < chunk.next_offset <= self.end:
                for records in whole_parts(self.store, f"{self.path}/{chunk.name}", chunk):
                    found = whole_batches(records, self.topic_partition, offset, self.end)
                    if found.next_offset > offset:
                        importing.write(found.records, found.next_offset)
                        on_copied(found.next_offset - offset, len(found.records))
                        offset = found.next_offset
        importing.finish(self.end)


def whole_parts(store: Store, name: str, chunk: Chunk) -> Iterator[memoryview]:
    """The chunk in parts of several megabytes that end between batches.

    CommandError at the end, where the checksum is compared, if it is not as it was written.
    """
    digest, size = hashlib.sha256(), 0
    rest = bytearray()
    try:
        for data in store.stream(name):
            digest.update(data)
            size += len(data)
            rest += data
            end = _end_of_batches(rest)
            if end:
                whole = memoryview(bytes(rest[:end]))
                del rest[:end]
                yield whole
    except FileNotFoundError:
        raise CommandError(f"{store.address}/{name} is missing") from None
    if size != chunk.size:
        raise CommandError(f"{store.address}/{name} has {size} bytes, not {chunk.size}")
    if digest.hexdigest() != chunk.sha256:
        raise CommandError(f"{store.address}/{name} is damaged: its checksum is wrong")


def _end_of_batches(data: bytearray) -> int:
    """Where the last whole batch ends."""
    position = 0
    while position + 12 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        position += size
    return position
