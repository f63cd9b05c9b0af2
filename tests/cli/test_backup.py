"""Backups of brokers in this process, restored with the same offsets."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.types import TopicName
from kio.static.primitive import i32, i64
from tests.cli.conftest import Ottla
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs

from ottla.cli.backups.cluster_state import ClusterState, read_state
from ottla.cli.backups.parallel import wire_cluster
from ottla.cli.backups.partition_backup import PartitionBackup
from ottla.cli.backups.state_changes import apply_groups
from ottla.cli.backups.store import DirectoryStore, ObjectStore
from ottla.cli.connection import Connection
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.groups import commit_offsets
from ottla.client.wire.importing import Importer
from ottla.client.wire.offsets import EARLIEST, LATEST, list_offsets
from ottla.client.wire.producing import (
    Producer,
    add_partitions,
    end_transaction,
    init_producer,
    init_transactions,
    produce,
)
from ottla.client.wire.topics import ensure_topic
from ottla.protocol.times import milliseconds
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.testing import EmbeddedBroker, EmbeddedCluster

SECURE = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
ORDERS = [TopicPartition("orders", partition) for partition in range(2)]
TABLE = TopicPartition("table", 0)
EMPTY = TopicPartition("empty", 0)
PLACES = [*ORDERS, TABLE, EMPTY]


def fill(bootstrap: str, ottla: Ottla) -> None:
    """Idempotent and transactional records, a compacted topic, an emptied log, and groups."""
    with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "orders", partitions=2, config={"retention.ms": "-1"})
        write_orders(cluster)
        _fill_table(cluster)
        ensure_topic(cluster, "empty", partitions=1)
        produce(cluster, {EMPTY: batch(b"gone")})
        delete_all(cluster, EMPTY)
        commit_offsets(cluster, "readers", {ORDERS[0]: 3, TABLE: 1004})
        workers = ClusterState(share_groups={"workers": [["orders", 1, 5]]})
        assert apply_groups(cluster, workers, {ORDERS[1]: 10}) == []
    rule = ("--allow-principal", "alice", "--consumer", "--topic", "orders", "--group", "readers")
    arguments = (
        ("acls", "add", *rule),
        ("quotas", "set", "producer_byte_rate=1000", "--user", "alice"),
        ("configs", "alter", "--group", "readers", "--set", "consumer.session.timeout.ms=50000"),
    )
    for each in arguments:
        outcome = ottla(*each, bootstrap=bootstrap)
        assert outcome.exit_code == 0, outcome


def write_orders(cluster: Cluster, sequence: int = 0) -> None:
    producer = init_producer(cluster)
    record = Record(timestamp=5, key=b"k", value=b"v" * 500, headers=(("h", b"1"), ("n", None)))
    for compression in range(5):
        for topic_partition in ORDERS:
            sent = build_batch(
                [record._replace(offset=index) for index in range(3)],
                compression=compression,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                base_sequence=3 * compression,
            )
            produce(cluster, {topic_partition: bytes(sent)})
    for number, committed in enumerate((True, False)):
        name = f"writer-{sequence}-{number}"
        writer = init_transactions(cluster, name, 60_000).producer
        add_partitions(cluster, name, writer, ORDERS)
        records = batch(b"in", b"it", producer=Producer(*writer), transactional=True)
        produce(cluster, dict.fromkeys(ORDERS, records), transactional_id=name)
        end_transaction(cluster, name, writer, commit=committed)


def _fill_table(cluster: Cluster) -> None:
    """Like a compacted log: a start offset, gaps, tombstones, and no record at the end."""
    ensure_topic(cluster, "table", partitions=1, config={"record.import": "open"})
    batches = [
        (1000, [Record(offset=1000, key=b"a", value=b"1"), Record(offset=1007, key=b"b")], 9),
        (1020, [Record(offset=1020, key=b"c", value=None)], 0),
        (1021, [], 4),
    ]
    with Importer(cluster, TABLE) as importer:
        end = importer.begin(1000)
        for base, records, delta in batches:
            built = build_batch(records, base_offset=base, last_offset_delta=delta)
            importer.write(built, end)
            end = base + delta + 1
        importer.finish()


def delete_all(cluster: Cluster, topic_partition: TopicPartition) -> None:
    partition = DeleteRecordsPartition(
        partition_index=i32(topic_partition.partition), offset=i64(-1)
    )
    topic = DeleteRecordsTopic(name=TopicName(topic_partition.topic), partitions=(partition,))
    request = DeleteRecordsRequest(topics=(topic,), timeout=milliseconds(60_000))
    ((answer,),) = (
        each.partitions for each in cluster.leader(topic_partition).call(request).topics
    )
    assert not answer.error_code, answer


@pytest.fixture(scope="module")
def brokers() -> Iterator[tuple[EmbeddedBroker, EmbeddedBroker]]:
    with EmbeddedBroker(config=SECURE) as source, EmbeddedBroker(config=SECURE) as target:
        yield source, target


def logs_of(bootstrap: str) -> dict[TopicPartition, tuple[int | None, int | None, bytes]]:
    with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        starts = list_offsets(cluster, dict.fromkeys(PLACES, EARLIEST))
        ends = list_offsets(cluster, dict.fromkeys(PLACES, LATEST))
        return {
            topic_partition: (
                starts[topic_partition],
                ends[topic_partition],
                without_epochs(read_raw(cluster, topic_partition)),
            )
            for topic_partition in PLACES
        }


def state_of(bootstrap: str) -> ClusterState:
    with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
        return read_state(cluster, {topic_partition.topic for topic_partition in PLACES})


def test_a_backup_comes_back_with_the_same_offsets_and_all_that_belongs_to_it(
    ottla: Ottla, brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path
) -> None:
    source, target = (each.bootstrap_servers for each in brokers)
    fill(source, ottla)
    first = ottla("backup", "--to", tmp_path / "b", "--json", bootstrap=source)
    assert first.exit_code == 0, first.errors
    assert (first.json["topics"], first.json["partitions"]) == (3, 4)
    again = ottla("backup", "--to", tmp_path / "b", "--json", bootstrap=source)
    assert (again.exit_code, again.json["bytes"]) == (0, 0)
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        write_orders(cluster, 1)
    later = ottla("backup", "--to", tmp_path / "b", "--json", bootstrap=source)
    assert 0 < later.json["bytes"] < first.json["bytes"] * 2
    assert ottla("backup", "verify", tmp_path / "b").exit_code == 0

    restored = ottla("restore", "--from", tmp_path / "b", "--json", bootstrap=target)
    assert (restored.exit_code, restored.json["notes"]) == (0, []), restored.errors
    assert logs_of(target) == logs_of(source)
    before, after = state_of(source), state_of(target)
    assert after == before
    assert before.groups["readers"]
    assert before.share_groups == {"workers": [["orders", 1, 5]]}
    assert before.acls
    assert before.quotas
    assert before.group_configs["readers"] == {"consumer.session.timeout.ms": "50000"}
    described = ottla("configs", "describe", "--topic", "orders", "--json", bootstrap=target).json
    assert {each["key"]: each["value"] for each in described}["retention.ms"] == "-1"
    with Cluster(target, retry_timeout_ms=120_000) as cluster:
        end = list_offsets(cluster, {EMPTY: LATEST})[EMPTY]
        assert produce(cluster, {EMPTY: batch(b"next")})[EMPTY] == end == 1
    refused = ottla("restore", "--from", tmp_path / "b", "--topic", "nothing", bootstrap=target)
    assert refused.exit_code == 2


def test_a_topic_that_exists_is_not_restored(
    ottla: Ottla, brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path
) -> None:
    source = brokers[0].bootstrap_servers
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "mine", partitions=1)
    command = ("--topic", "mine")
    assert ottla("backup", "--to", tmp_path / "b", *command, bootstrap=source).exit_code == 0
    refused = ottla("restore", "--from", tmp_path / "b", *command, bootstrap=source)
    assert refused.exit_code == 1
    assert "mine exists already" in refused.errors


def test_a_flipped_byte_and_a_missing_chunk_are_found(
    ottla: Ottla, brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path
) -> None:
    source = brokers[0].bootstrap_servers
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "flipped", partitions=1)
        for _ in range(3):
            produce(cluster, {TopicPartition("flipped", 0): batch(b"some", b"thing")})
    command = ("backup", "--to", tmp_path / "b", "--topic", "flipped")
    assert ottla(*command, bootstrap=source).exit_code == 0
    (chunk,) = (tmp_path / "b").rglob("*.log")
    good = chunk.read_bytes()
    for position in (12, 70, len(good) - 1):  # The checksum of a batch does not cover the epoch.
        chunk.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        found = ottla("backup", "verify", tmp_path / "b")
        assert found.exit_code == 1, position
        assert "flipped-0" in found.errors
    chunk.write_bytes(good[:-1])
    assert "bytes, not" in ottla("backup", "verify", tmp_path / "b").errors
    chunk.unlink()
    assert "is missing" in ottla("backup", "verify", tmp_path / "b").errors


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_a_run_that_was_interrupted_is_gone_on_with(
    brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path, kind: str
) -> None:
    memory_store = pytest.importorskip("obstore.store").MemoryStore
    store = (
        DirectoryStore(tmp_path)
        if kind == "directory"
        else ObjectStore(memory_store(), "memory://")
    )
    topic = "interrupted-" + kind.replace(" ", "-")
    topic_partition = TopicPartition(topic, 0)
    with Cluster(brokers[0].bootstrap_servers, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, topic, partitions=1)
        for number in range(40):
            produce(cluster, {topic_partition: batch(b"%d" % number * 30_000)})

        class Interrupted(Exception):
            pass

        copied: list[int] = []

        def interrupt(_: int, size: int) -> None:
            copied.append(size)
            if len(copied) == 8:
                raise Interrupted

        backup = PartitionBackup(
            store, "p", topic_partition, chunk_bytes=100_000, fetch_bytes_max=60_000
        )
        with pytest.raises(Interrupted):
            backup.run(cluster, 0, 40, interrupt)
        before = len(store.names(".log"))
        assert 0 < before < 10
        assert store.names(".part") == []
        sizes: list[int] = []
        rest = PartitionBackup(store, "p", topic_partition, chunk_bytes=100_000)
        assert rest.run(cluster, 0, 40, lambda _, size: sizes.append(size)) == 0
        data = b"".join(bytes(part) for name in store.names(".log") for part in store.stream(name))
        assert data == read_raw(cluster, topic_partition)
        assert sum(sizes) < len(data)


def test_a_backup_goes_on_when_the_leader_of_the_source_dies(tmp_path: Path) -> None:
    topic_partition = TopicPartition("moved", 0)
    store = DirectoryStore(tmp_path)
    with (
        EmbeddedCluster(3) as source,
        wire_cluster(Connection(source.bootstrap_servers), gives_up=True) as cluster,
    ):
        ensure_topic(cluster, "moved", partitions=1, replication_factor=3)
        for number in range(40):
            produce(cluster, {topic_partition: batch(b"%d" % number * 10_000)})
        copied: list[int] = []

        def kill_leader(offsets: int, _: int) -> None:
            copied.append(offsets)
            if sum(copied) == 20:
                source.kill_node(source.leader("moved"))

        partition = PartitionBackup(store, "p", topic_partition, fetch_bytes_max=1)
        assert partition.run(cluster, 0, 40, kill_leader) == 0
        data = b"".join(bytes(part) for name in store.names(".log") for part in store.stream(name))
        assert data == read_raw(cluster, topic_partition)
    assert sum(copied) == 40


def test_a_restore_that_was_interrupted_goes_on_through_a_change_of_leaders(
    ottla: Ottla, brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path
) -> None:
    source = brokers[0].bootstrap_servers
    topic_partition = TopicPartition("moved", 0)
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "moved", partitions=1)
        for number in range(30):
            produce(cluster, {topic_partition: batch(b"%d" % number * 10_000)})
        data = read_raw(cluster, topic_partition)
    command = ("--topic", "moved")
    assert ottla("backup", "--to", tmp_path / "b", *command, bootstrap=source).exit_code == 0
    (chunk,) = (tmp_path / "b").rglob("*.log")
    restore = ("restore", "--from", tmp_path / "b", *command)
    with EmbeddedCluster(3) as target:
        address = target.bootstrap_servers
        chunk.rename(chunk.with_suffix(".away"))
        broken = ottla(*restore, "--replication-factor", "3", bootstrap=address)
        assert "is missing" in broken.errors
        chunk.with_suffix(".away").rename(chunk)
        with Cluster(address, retry_timeout_ms=120_000) as cluster:
            _import_some(cluster, topic_partition, data, 10)
            leader = target.leader("moved")
            target.kill_node(leader)
            outcome = ottla(*restore, "--json", bootstrap=address)
            assert outcome.exit_code == 0, outcome.errors
            assert 0 < outcome.json["bytes"] < len(data)
            target.heal()
            for node_id in target.node_ids:
                target.move_leader("moved", to=node_id)
                cluster.forget()
                assert without_epochs(read_raw(cluster, topic_partition)) == without_epochs(data)


def _import_some(
    cluster: Cluster, topic_partition: TopicPartition, data: bytes, count: int
) -> None:
    with Importer(cluster, topic_partition) as importer:
        end = importer.begin(0)
        for position, header in list(iterate_headers(data))[:count]:
            importer.write(data[position : position + header.size], end)
            end = header.next_offset
        importer.finish()


def test_a_url_names_an_object_store(
    ottla: Ottla, brokers: tuple[EmbeddedBroker, EmbeddedBroker], tmp_path: Path
) -> None:
    pytest.importorskip("obstore")
    source, target = (each.bootstrap_servers for each in brokers)
    topic_partition = TopicPartition("stored", 0)
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "stored", partitions=1)
        produce(cluster, {topic_partition: batch(b"x" * 100)})
    (tmp_path / "b").mkdir()
    url = (tmp_path / "b").as_uri()
    command = ("--topic", "stored")
    assert ottla("backup", "--to", url, *command, bootstrap=source).exit_code == 0
    assert ottla("backup", "verify", url).exit_code == 0
    outcome = ottla("restore", "--from", url, *command, "--set", "retention.ms=7", bootstrap=target)
    assert outcome.exit_code == 0, outcome.errors
    document = json.loads((tmp_path / "b" / "backup.json").read_text())
    assert document["topics"][0]["end_offsets"] == {"0": 1}
    described = ottla("configs", "describe", "--topic", "stored", "--json", bootstrap=target).json
    assert {each["key"]: each["value"] for each in described}["retention.ms"] == "7"


def test_what_cannot_be_opened_is_said(ottla: Ottla, tmp_path: Path) -> None:
    outcome = ottla("backup", "verify", tmp_path)
    assert outcome.exit_code == 1
    assert "has no complete backup" in outcome.errors
    assert ottla("backup", "verify", "nowhere://x").exit_code == 1
