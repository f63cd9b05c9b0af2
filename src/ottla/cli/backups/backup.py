"""`ottla backup`: topics with their records, groups, configs, ACLs and quotas, into a store."""

import time
from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from ottla.cli.backups.cluster_state import cluster_id, read_state
from ottla.cli.backups.manifest import BackupDocument, TopicBackup
from ottla.cli.backups.parallel import (
    Progress,
    check_controller,
    for_each,
    wire_cluster,
    wire_errors,
)
from ottla.cli.backups.partition_backup import PartitionBackup
from ottla.cli.backups.store import Store, open_store
from ottla.cli.backups.topics import ranges_of, read_topics, topic_partitions_of
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import format_size, print_outcome
from ottla.cli.parameters import AsJson
from ottla.client.wire.cluster import TopicPartition

Topics = Annotated[
    list[str] | None,
    Parameter(help="Only topics that match this name or pattern; may be repeated."),
]
Excluded = Annotated[
    list[str] | None,
    Parameter(help="Skip topics that match this name or pattern; may be repeated."),
]
Threads = Annotated[int, Parameter(help="How many partitions to copy at the same time.")]


def backup(
    *,
    to: str,
    topic: Topics = None,
    exclude: Excluded = None,
    threads: Threads = 2,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Copy topics, groups, configs, ACLs and quotas into a directory or an object store.

    A later run to the same target copies only what is new, and resumes a run that was interrupted.
    A backup is consistent per partition: it has all records up to the last stable offset at the
    start of the run.

    Args:
        to: A directory, or the URL of an object store, such as s3://bucket/path.
    """
    connection.reach()
    check_controller(connection)
    store = open_store(to)
    with store.lock(), wire_errors(connection):
        summary = _back_up(connection, store, topic or [], exclude or [], threads)
    lines = [
        f"{summary['topics']} topics, {summary['partitions']} partitions and"
        f" {summary['groups']} groups are in {store.address};"
        f" {format_size(summary['bytes'])} were new"
    ]
    if lost := summary["lost_offsets"]:
        lines.append(f"{lost} offsets had been removed by retention since the last backup")
    lines += [f"left out: {note}" for note in summary["notes"]]
    print_outcome(summary, *lines, as_json=as_json)


def _back_up(
    connection: Connection, store: Store, patterns: list[str], excluded: list[str], threads: int
) -> dict[str, Any]:
    with wire_cluster(connection, gives_up=True) as cluster:
        topics = read_topics(cluster, patterns, excluded)
        # First, so that no group is further than the records that are copied.
        state = read_state(cluster, {each.name for each in topics})
        ranges = ranges_of(cluster, topic_partitions_of(topics))
        taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        document = BackupDocument(cluster_id(cluster), taken_at, topics, asdict(state))
    size, lost = _copy(connection, store, topics, ranges, threads)
    document.save(store)
    return {
        "to": store.address,
        "topics": len(topics),
        "partitions": len(ranges),
        "bytes": size,
        "lost_offsets": lost,
        "groups": len(state.groups) + len(state.share_groups),
        "acls": len(state.acls),
        "quotas": len(state.quotas),
        "users": len(state.users),
        "notes": state.notes,
    }


def _copy(
    connection: Connection,
    store: Store,
    topics: list[TopicBackup],
    ranges: dict[TopicPartition, tuple[int, int]],
    threads: int,
) -> tuple[int, int]:
    """Bytes, and offsets that retention removed before they were copied."""
    by_name = {each.name: each for each in topics}
    with Progress(sum(end - start for start, end in ranges.values())) as progress:

        def copy(topic_partition: TopicPartition) -> int:
            topic = by_name[topic_partition.topic]
            start, end = ranges[topic_partition]
            topic.start_offsets[topic_partition.partition] = start
            topic.end_offsets[topic_partition.partition] = end
            with wire_cluster(connection, gives_up=True) as cluster:
                path = topic.path(topic_partition.partition)
                partition = PartitionBackup(store, path, topic_partition)
                return partition.run(cluster, start, end, progress.on_copied)

        lost = for_each(list(ranges), copy, threads)
    return progress.bytes, sum(lost.values())
