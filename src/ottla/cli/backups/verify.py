"""`ottla backup verify`: whether a backup is as it was written, without a cluster."""

from ottla.cli.backups.backup import Threads
from ottla.cli.backups.manifest import DOCUMENT, BackupDocument, PartitionManifest, runs_of
from ottla.cli.backups.parallel import for_each
from ottla.cli.backups.partition_restore import whole_parts
from ottla.cli.backups.store import Store, open_store
from ottla.cli.backups.whole_batches import whole_batches
from ottla.cli.errors import CommandError
from ottla.cli.output import format_size, print_outcome
from ottla.cli.parameters import AsJson
from ottla.client.wire.cluster import TopicPartition


def verify(from_: str, /, *, threads: Threads = 2, as_json: AsJson = False) -> None:
    """Read every chunk of all runs of a backup and compare it with its checksum.

    Args:
        from_: The directory, or the URL of the object store.
    """
    store = open_store(from_)
    document = BackupDocument.load(store)
    paths = _paths(store, document)
    sizes = for_each(
        list(paths),
        lambda topic_partition: _verify(store, topic_partition, *paths[topic_partition]),
        threads,
    )
    summary = {
        "from": store.address,
        "taken_at": document.taken_at,
        "partitions": len(sizes),
        "bytes": sum(sizes.values()),
    }
    text = (
        f"{format_size(sum(sizes.values()))} in {len(sizes)} partitions match their checksums;"
        f" {DOCUMENT} was written at {document.taken_at}"
    )
    print_outcome(summary, text, as_json=as_json)


def _paths(store: Store, last: BackupDocument) -> dict[TopicPartition, tuple[str, int]]:
    """Each partition of any run, and where it ends; of a topic made anew, each by its id."""
    current = {topic.name: topic.id for topic in last.topics}
    paths: dict[TopicPartition, tuple[str, int]] = {}
    for document in (*(BackupDocument.load(store, run) for run in runs_of(store)), last):
        for topic in document.topics:
            is_current = current.get(topic.name) == topic.id
            name = topic.name if is_current else f"{topic.name}@{topic.id}"
            for partition, end in topic.end_offsets.items():
                paths[TopicPartition(name, partition)] = topic.path(partition), end
    return paths


def _verify(store: Store, topic_partition: TopicPartition, path: str, end: int) -> int:
    """Bytes that were read. Chunks, and the batches in them, follow each other."""
    manifest = PartitionManifest.existing(store, path)
    if manifest.end_offset < end:
        raise CommandError(f"it ends at {manifest.end_offset}, and should at {end}")
    size = 0
    for chunk in manifest.chunks:
        offset = chunk.start_offset
        for records in whole_parts(store, f"{path}/{chunk.name}", chunk):
            found = whole_batches(records, topic_partition, offset, chunk.next_offset)
            offset = found.next_offset
            size += len(records)
        if offset != chunk.next_offset:
            raise CommandError(f"{chunk.name} ends at {offset}, and should at {chunk.next_offset}")
    return size
