"""`ottla restore`: a backup back into a cluster, with the offsets that it had."""

from ottla.cli.assignments import parse_assignments
from ottla.cli.backups.backup import Excluded, Threads, Topics
from ottla.cli.backups.cluster_state import ClusterState
from ottla.cli.backups.importing import ImportRun
from ottla.cli.backups.manifest import BackupDocument, PartitionManifest, TopicBackup
from ottla.cli.backups.parallel import Patience, Progress, for_each, wire_cluster, wire_errors
from ottla.cli.backups.partition_restore import PartitionRestore
from ottla.cli.backups.state_changes import apply_state, close_import
from ottla.cli.backups.store import Store, open_store
from ottla.cli.backups.topics import chosen, create_missing, topic_partitions_of
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import format_size, print_outcome
from ottla.cli.parameters import AsJson, Flag
from ottla.client.wire.cluster import TopicPartition
from ottla.client.wire.errors import WireError


def restore(
    *,
    from_: str,
    topic: Topics = None,
    exclude: Excluded = None,
    run: str | None = None,
    set_: list[str] | None = None,
    replication_factor: int | None = None,
    broker_configs: Flag = False,
    keep_open: Flag = False,
    threads: Threads = 2,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Restore topics with the same offsets, and their configs, groups, quotas and ACLs.

    A topic must not exist yet. To resume an interrupted restore, run the command again. Producers
    are refused until a topic is complete.

    Args:
        from_: The directory, or the URL of the object store.
        run: An earlier run, as `ottla backup list` shows it, instead of the last.
        set_: KEY=VALUE, overrides a config of the restored topics; may be repeated.
        replication_factor: Replication factor of the restored topics; their own by default.
        broker_configs: Also restore the cluster-wide broker configs.
        keep_open: Leave the topics open for imports and closed to producers.
    """
    extra = parse_assignments("--set", set_ or [])
    connection.reach()
    store = open_store(from_)
    document = BackupDocument.load(store, run)
    names = set(chosen([each.name for each in document.topics], topic or (), exclude or ()))
    topics = [each for each in document.topics if each.name in names]
    with wire_errors(connection), wire_cluster(connection) as cluster:
        refusal = "exists already; delete it, or --exclude it"
        done, notes = create_missing(cluster, topics, replication_factor, extra, refusal=refusal)
        size = _copy(connection, store, [each for each in topics if each.name not in done], threads)
        ends = {
            TopicPartition(each.name, partition): end
            for each in topics
            for partition, end in each.end_offsets.items()
        }
        notes += apply_state(
            cluster, ClusterState(**document.state), ends, broker_configs=broker_configs
        )
        for name in sorted(names - done):
            if not keep_open:
                close_import(cluster, name)
    print_outcome(
        {"from": store.address, "topics": len(topics), "bytes": size, "notes": notes},
        f"{len(topics)} topics are restored; {format_size(size)} were written",
        *(f"not as it was: {note}" for note in notes),
        as_json=as_json,
    )


def _copy(connection: Connection, store: Store, topics: list[TopicBackup], threads: int) -> int:
    by_name = {each.name: each for each in topics}
    work = {}
    for topic_partition in topic_partitions_of(topics):
        topic = by_name[topic_partition.topic]
        path = topic.path(topic_partition.partition)
        manifest = PartitionManifest.existing(store, path)
        end = topic.end_offsets[topic_partition.partition]
        work[topic_partition] = PartitionRestore(store, path, topic_partition, manifest, end)
    total = sum(each.end - each.manifest.log_start_offset for each in work.values())
    with Progress(total) as progress:

        def copy(topic_partition: TopicPartition) -> None:
            patience = Patience()
            with wire_cluster(connection) as cluster:
                while True:
                    before = progress.bytes
                    try:
                        with ImportRun(cluster, topic_partition) as importing:
                            work[topic_partition].run(importing, progress.on_copied)
                            return
                    except WireError as error:
                        cluster.forget()
                        patience.wait(error, progressed=progress.bytes > before)

        for_each(list(work), copy, threads)
    return progress.bytes
