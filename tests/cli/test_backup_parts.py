"""Unusual cases for backups: gaps, lost records, recreated topics, two backups at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Ottla
from tests.cli.test_backup import delete_all
from tests.client.topics import delete_topic
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs

from ottla.cli.backups import parallel
from ottla.cli.backups.cluster_state import ClusterState, set_configs
from ottla.cli.backups.importing import ImportRun
from ottla.cli.backups.manifest import TopicBackup
from ottla.cli.backups.parallel import LOOK_INTERVAL_S, ControllerWatch
from ottla.cli.backups.source_batches import EMPTY_ANSWERS_MAX, source_batches
from ottla.cli.backups.state_changes import apply_state, close_import
from ottla.cli.backups.store import DirectoryStore
from ottla.cli.backups.topics import chosen, create_open, read_topics
from ottla.cli.connection import Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.configs import BROKER, GROUP
from ottla.client.wire.fetching import Fetched
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.producing import produce
from ottla.client.wire.topics import ensure_topic
from ottla.records.batch import iterate_headers
from ottla.records.builder import Record, build_batch
from ottla.testing import EmbeddedBroker

PLACE = TopicPartition("orders", 0)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with EmbeddedBroker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def cluster(broker: str) -> Iterator[Cluster]:
    with Cluster(broker, retry_timeout_ms=120_000) as cluster:
        yield cluster


class Answers:
    """A fetcher with canned responses."""

    def __init__(self, *answers: Fetched) -> None:
        self._answers = list(answers)
        self.count = 0

    def fetch(self, _: int) -> Fetched:
        self.count += 1
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]

    def ask(self, offset: int) -> None:
        pass


def answer(records: bytes, stable: int = 10) -> Fetched:
    return Fetched(memoryview(records), (), stable, stable, 0)


def stored(offset: int, count: int) -> bytes:
    return bytes(build_batch([Record(value=b"v")] * count, base_offset=offset))


def read(fetcher: Any, end: int) -> list[tuple[int, int]]:
    return [
        (len(each.records), each.next_offset) for each in source_batches(fetcher, PLACE, 0, end)
    ]


def test_offsets_without_records_at_the_end_are_a_gap() -> None:
    records = stored(0, 2)
    assert read(Answers(answer(records), answer(stored(12, 1), 13)), 10) == [
        (len(records), 2),
        (0, 10),
    ]


def test_one_empty_answer_is_not_taken_for_a_gap() -> None:
    """A broker that throttles a client sends no records."""
    records = stored(0, 10)
    throttled = Answers(*[answer(b"")] * EMPTY_ANSWERS_MAX, answer(records))
    assert read(throttled, 10) == [(len(records), 10)]
    silent = Answers(answer(b""))
    assert read(silent, 10) == [(0, 10)]
    assert silent.count == EMPTY_ANSWERS_MAX + 1


def test_a_new_leader_whose_followers_have_not_confirmed_all_is_asked_again() -> None:
    first, rest = stored(0, 3), stored(3, 7)
    leader = Answers(answer(first), *[answer(b"", 3)] * (EMPTY_ANSWERS_MAX + 2), answer(rest))
    assert read(leader, 10) == [(len(first), 3), (len(rest), 10)]


def test_a_cluster_has_time_to_elect_a_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any broker may know it: the one that was named may be the one that died."""
    looked: list[str] = []
    monkeypatch.setattr(
        parallel, "check_controller", lambda connection: looked.append(connection.bootstrap_server)
    )
    watch = ControllerWatch(Connection("named:9092"), lambda: "named:9092,other:9092")
    for trying_s in (0.0, 0.05, LOOK_INTERVAL_S - 1):
        watch(trying_s)
    assert looked == []
    for trying_s in (LOOK_INTERVAL_S, LOOK_INTERVAL_S + 1, 0.05, LOOK_INTERVAL_S - 1):
        watch(trying_s)
    assert looked == ["named:9092,other:9092"]
    watch(LOOK_INTERVAL_S)
    assert len(looked) == 2


def test_a_log_that_became_shorter_is_told() -> None:
    with pytest.raises(CommandError, match="ends at 3, and ended at 10"):
        list(source_batches(Answers(answer(b"", 3)), PLACE, 0, 10, retry_ms=0))  # type: ignore[arg-type]


def test_a_log_that_is_another_one_is_told() -> None:
    with pytest.raises(CommandError, match="is not the one that was copied before"):
        list(source_batches(Answers(answer(stored(0, 4))), PLACE, 2, 10))  # type: ignore[arg-type]


def test_a_gap_at_the_end_is_restored_as_one(cluster: Cluster) -> None:
    topic_partition = TopicPartition("gap", 0)
    ensure_topic(cluster, "gap", partitions=1, config={"record.import": "open"})
    with ImportRun(cluster, topic_partition) as importing:
        assert importing.begin(0, 10) == 0
        importing.write(memoryview(stored(0, 2)), 2)
        importing.finish(10)
    close_import(cluster, "gap")
    assert list_offsets(cluster, {topic_partition: LATEST})[topic_partition] == 10
    assert produce(cluster, {topic_partition: batch(b"next")})[topic_partition] == 10
    counts = [
        header.records_count for _, header in iterate_headers(read_raw(cluster, topic_partition))
    ]
    assert counts == [2, 0, 1]


def test_what_retention_removed_between_two_runs_is_counted(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic_partition = TopicPartition("lossy", 0)
    ensure_topic(cluster, "lossy", partitions=1)
    command = ("backup", "--to", tmp_path, "--topic", "lossy", "--json")
    produce(cluster, {topic_partition: batch(b"1", b"2")})
    assert ottla(*command, bootstrap=broker).json["lost_offsets"] == 0
    kept = read_raw(cluster, topic_partition)
    produce(cluster, {topic_partition: batch(b"3", b"4", b"5")})
    delete_all(cluster, topic_partition)
    produce(cluster, {topic_partition: batch(b"6")})
    assert ottla(*command, bootstrap=broker).json["lost_offsets"] == 3
    kept += read_raw(cluster, topic_partition)
    assert ottla("backup", "verify", tmp_path).exit_code == 0
    with EmbeddedBroker() as target:
        restored = ottla("restore", "--from", tmp_path, bootstrap=target.bootstrap_servers)
        assert restored.exit_code == 0, restored.errors
        with Cluster(target.bootstrap_servers) as other:
            assert without_epochs(read_raw(other, topic_partition)) == without_epochs(kept)


def test_a_topic_made_anew_is_another_one(
    ottla: Ottla, broker: str, cluster: Cluster, tmp_path: Path
) -> None:
    topic_partition = TopicPartition("anew", 0)
    command = ("backup", "--to", tmp_path, "--topic", "anew", "--json")
    sizes = []
    for _ in range(2):
        ensure_topic(cluster, "anew", partitions=1)
        cluster.retry(lambda: produce(cluster, {topic_partition: batch(b"1")}))
        sizes.append(ottla(*command, bootstrap=broker).json["bytes"])
        delete_topic(cluster, "anew")
        cluster.forget()
    assert sizes[0] == sizes[1] > 0
    assert len(list((tmp_path / "topics").iterdir())) == 2


def test_two_backups_at_a_time_are_refused(ottla: Ottla, broker: str, tmp_path: Path) -> None:
    with DirectoryStore(tmp_path).lock():
        outcome = ottla("backup", "--to", tmp_path, bootstrap=broker)
    assert outcome.exit_code == 1
    assert "another `ottla backup` works" in outcome.errors


def test_topics_are_chosen_by_patterns() -> None:
    names = ["logs-a", "logs-b", "orders"]
    assert chosen(names, [], []) == names
    assert chosen(names, ["logs-*", "orders"], ["*-b"]) == ["logs-a", "orders"]
    with pytest.raises(UsageError, match="--topic nothing"):
        chosen(names, ["nothing"], [])


def test_a_topic_with_smaller_segments_than_allowed_gets_the_smallest_allowed(
    cluster: Cluster,
) -> None:
    """An earlier version of Ottla, or Kafka before 4.0, took any size."""
    configs = {"segment.bytes": "65536", "retention.ms": "1000"}
    topic = TopicBackup("small-segments", "none", 1, configs, {0: 0})
    notes = create_open(cluster, topic, None, {})
    assert notes == ["topic small-segments: segment.bytes 1048576, not 65536"]
    (found,) = read_topics(cluster, ["small-segments"], [])
    assert found.configs == {"segment.bytes": "1048576", "retention.ms": "1000"}


def test_a_given_size_of_segments_is_the_one_that_counts(cluster: Cluster) -> None:
    topic = TopicBackup("given-segments", "none", 1, {"segment.bytes": "65536"}, {0: 0})
    assert create_open(cluster, topic, None, {"segment.bytes": "2097152"}) == []
    (found,) = read_topics(cluster, ["given-segments"], [])
    assert found.configs == {"segment.bytes": "2097152"}


def test_a_refused_config_of_brokers_does_not_keep_the_others_from_being_set(
    cluster: Cluster,
) -> None:
    accepted = {"log.retention.ms": "1000", "log.segment.bytes": "2097152"}
    state = ClusterState(broker_configs={"num.partitions": "-5", **accepted})
    (note,) = apply_state(cluster, state, {}, broker_configs=True)
    assert note.startswith("num.partitions of all brokers (")
    assert set_configs(cluster, BROKER, [""])[""] == accepted


def test_a_refused_config_of_a_group_does_not_keep_the_others_from_being_set(
    cluster: Cluster,
) -> None:
    accepted = {"consumer.session.timeout.ms": "50000"}
    configs = accepted | {"share.auto.offset.reset": "nowhere"}
    (note,) = apply_state(cluster, ClusterState(group_configs={"g": configs}), {})
    assert note.startswith("share.auto.offset.reset of group g (")
    assert set_configs(cluster, GROUP, ["g"])["g"] == accepted
