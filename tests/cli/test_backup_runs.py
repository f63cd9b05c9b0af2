"""Earlier runs of a backup: listed, restored, and pruned."""

import datetime as dt
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
from tests.client.topics import delete_topic
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs

from ottla.cli.backups.manifest import DOCUMENT, BackupDocument, run_path, runs_of
from ottla.cli.backups.prune import kept_runs
from ottla.cli.backups.store import DirectoryStore, ObjectStore, Store
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.offsets import EARLIEST, list_offsets
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.protocol.times import milliseconds
from ottla.testing import EmbeddedBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def cluster(broker: str) -> Iterator[Cluster]:
    with Cluster(broker, retry_timeout_ms=120_000) as cluster:
        yield cluster


def delete_before(cluster: Cluster, topic_partition: TopicPartition, offset: int) -> None:
    partition = DeleteRecordsPartition(
        partition_index=i32(topic_partition.partition), offset=i64(offset)
    )
    topic = DeleteRecordsTopic(name=TopicName(topic_partition.topic), partitions=(partition,))
    request = DeleteRecordsRequest(topics=(topic,), timeout=milliseconds(60_000))
    ((answer,),) = (
        each.partitions for each in cluster.leader(topic_partition).call(request).topics
    )
    assert not answer.error_code, answer


def back_up(ottla: Ottla, broker: str, root: Path, pattern: str, taken_at: str) -> None:
    """A run from another time."""
    outcome = ottla("backup", "--to", root, "--topic", pattern, bootstrap=broker)
    assert outcome.exit_code == 0, outcome.errors
    store = DirectoryStore(root)
    document = BackupDocument.load(store)
    store.delete(run_path(document.run))
    document.taken_at = taken_at
    document.save(store)


def test_a_topic_that_was_deleted_comes_back_from_an_earlier_run(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    for name in ("shop-a", "shop-b"):
        ensure_topic(cluster, name, partitions=1)
        produce(cluster, {TopicPartition(name, 0): batch(b"1", name.encode())})
    topic_partition = TopicPartition("shop-a", 0)
    held = read_raw(cluster, topic_partition)
    back_up(ottla, broker, tmp_path, "shop-*", "2026-11-01T00:00:00Z")
    delete_topic(cluster, "shop-a")
    cluster.forget()
    back_up(ottla, broker, tmp_path, "shop-*", "2026-11-02T00:00:00Z")

    listed = ottla("backup", "list", tmp_path, "--json").json
    assert [(each["run"], each["topics"]) for each in listed] == [
        ("20261101T000000Z", 2),
        ("20261102T000000Z", 1),
    ]
    assert "20261101T000000Z" in ottla("backup", "list", tmp_path).output
    restore = ("restore", "--from", tmp_path, "--topic", "shop-a")
    assert "no such topic" in ottla(*restore, bootstrap=broker).errors
    outcome = ottla(*restore, "--run", "20261101T000000Z", bootstrap=broker)
    assert outcome.exit_code == 0, outcome.errors
    cluster.forget()
    assert without_epochs(read_raw(cluster, topic_partition)) == without_epochs(held)
    unknown = ottla(*restore, "--run", "20200101T000000Z", bootstrap=broker)
    assert "has no run 20200101T000000Z" in unknown.errors

    (chunk,) = (tmp_path / "topics").glob("shop-a@*/00000/*.log")
    whole = chunk.read_bytes()
    chunk.write_bytes(whole[:-1])
    assert "shop-a@" in ottla("backup", "verify", tmp_path).errors  # Only the earlier run has it.
    chunk.write_bytes(whole)

    pruned = ottla("backup", "prune", tmp_path, "--keep", "1", "--json")
    assert pruned.json["forgotten"] == ["20261101T000000Z"]
    assert pruned.json["bytes"] == len(whole)
    folders = [each.name.partition("@")[0] for each in (tmp_path / "topics").iterdir()]
    assert folders == ["shop-b"]
    assert ottla("backup", "verify", tmp_path).exit_code == 0


def test_prune_removes_chunks_that_left_the_log_before_the_oldest_kept_run(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic_partition = TopicPartition("aging", 0)
    ensure_topic(cluster, "aging", partitions=1)
    for day in range(1, 4):
        produce(cluster, {topic_partition: batch(b"%d" % day)})
        delete_before(cluster, topic_partition, day - 1)
        back_up(ottla, broker, tmp_path, "aging", f"2026-11-0{day}T00:00:00Z")
    produce(cluster, {topic_partition: batch(b"4")})
    last = ottla("backup", "--to", tmp_path, "--topic", "aging", "--json", bootstrap=broker)
    assert (last.exit_code, last.json["lost_offsets"]) == (0, 0)
    (folder,) = (tmp_path / "topics").iterdir()
    stray = folder / "00000" / "00000000000000000009.log.part"  # From a run that was killed.
    stray.touch()
    before = sorted(each.name for each in folder.rglob("*.log"))
    assert len(before) == 4
    shown = ottla("backup", "prune", tmp_path, "--keep", "2", "--dry-run", "--json").json
    assert (len(shown["forgotten"]), shown["files"]) == (2, 3)
    assert len(runs_of(DirectoryStore(tmp_path))) == 4

    pruned = ottla("backup", "prune", tmp_path, "--keep", "2", "--days", "1")
    assert pruned.exit_code == 0, pruned.errors
    assert sorted(each.name for each in folder.rglob("*.log")) == before[2:]
    assert not stray.exists()
    assert ottla("backup", "verify", tmp_path).exit_code == 0
    assert ottla("backup", "prune", tmp_path, "--keep", "2", "--json").json["files"] == 0
    with EmbeddedBroker() as target:
        outcome = ottla("restore", "--from", tmp_path, bootstrap=target.bootstrap_servers)
        assert outcome.exit_code == 0, outcome.errors
        with Cluster(target.bootstrap_servers) as other:
            assert list_offsets(other, {topic_partition: EARLIEST})[topic_partition] == 2
            assert without_epochs(read_raw(other, topic_partition)) == without_epochs(
                read_raw(cluster, topic_partition)
            )
    produce(cluster, {topic_partition: batch(b"5")})
    again = ottla("backup", "--to", tmp_path, "--topic", "aging", "--json", bootstrap=broker)
    assert (again.exit_code, again.json["lost_offsets"]) == (0, 0)


def test_the_last_run_is_never_forgotten(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    ensure_topic(cluster, "lasting", partitions=1)
    back_up(ottla, broker, tmp_path, "lasting", "2020-01-01T00:00:00Z")
    pruned = ottla("backup", "prune", tmp_path, "--days", "1", "--json")
    assert (pruned.json["forgotten"], pruned.json["kept"]) == ([], 1)
    assert ottla("backup", "prune", tmp_path).exit_code == 2
    assert ottla("backup", "prune", tmp_path, "--keep", "-1").exit_code == 2


def test_a_backup_without_runs_is_kept_whole(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    """Its document has no start offsets, so nothing is known to have been deleted from the log."""
    ensure_topic(cluster, "plain", partitions=1)
    produce(cluster, {TopicPartition("plain", 0): batch(b"1")})
    back_up(ottla, broker, tmp_path, "plain", "2020-01-01T00:00:00Z")
    (tmp_path / run_path("20200101T000000Z")).unlink()
    document = json.loads((tmp_path / DOCUMENT).read_text())
    del document["topics"][0]["start_offsets"]
    (tmp_path / DOCUMENT).write_text(json.dumps(document))
    assert ottla("backup", "prune", tmp_path, "--keep", "1", "--json").json["files"] == 0
    assert ottla("backup", "verify", tmp_path).exit_code == 0


def test_runs_are_kept_by_number_and_by_age() -> None:
    runs = [f"202611{day:02}T000000Z" for day in range(1, 11)]
    now = dt.datetime(2026, 11, 10, 12, tzinfo=dt.UTC)
    assert kept_runs(runs, 2, dt.timedelta(0), now) == runs[-2:]
    assert kept_runs(runs, 1, dt.timedelta(days=3), now) == runs[-3:]
    assert kept_runs(runs, 0, dt.timedelta(days=400), now) == runs


@pytest.mark.parametrize("kind", ["directory", "object store"])
def test_files_are_deleted_and_listed_by_folder(kind: str, tmp_path: Path) -> None:
    store: Store = DirectoryStore(tmp_path)
    if kind == "object store":
        store = ObjectStore(pytest.importorskip("obstore.store").MemoryStore(), "memory://")
    for name in ("a/b/1.log", "a/b/2.log", "ab/3.log"):
        store.write(name, b"x")
    assert store.names(".log", under="a") == ["a/b/1.log", "a/b/2.log"]
    for name in ("a/b/1.log", "a/b/2.log", "a/b/2.log"):
        store.delete(name)
    assert store.names("") == ["ab/3.log"]
    assert not (tmp_path / "a").exists()
