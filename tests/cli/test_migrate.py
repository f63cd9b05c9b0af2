"""Migration from another cluster: brokers in this process."""

import signal
import threading
import time
from collections.abc import Iterator

import pytest
from tests.cli.command import start_ottla
from tests.cli.conftest import Ottla
from tests.cli.test_backup import (
    ORDERS,
    PLACES,
    SECURE,
    TABLE,
    fill,
    logs_of,
    state_of,
    write_orders,
)
from tests.client.wire.batches import batch
from tests.client.wire.raw_logs import read_raw, without_epochs

from ottla.cli.backups.topics import add_partitions
from ottla.client.wire.cluster import Cluster, TopicPartition
from ottla.client.wire.errors import BrokerError
from ottla.client.wire.offsets import LATEST, list_offsets
from ottla.client.wire.producing import init_producer, produce
from ottla.client.wire.topics import ensure_topic
from ottla.records.batch import iterate_headers
from ottla.testing import EmbeddedBroker

CUT_OVER = ("--cut-over", "--interval", "0.01", "--json")


@pytest.fixture(scope="module")
def source() -> Iterator[str]:
    with EmbeddedBroker(config=SECURE) as broker:
        yield broker.bootstrap_servers


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    with EmbeddedBroker(config=SECURE) as broker:
        yield broker.bootstrap_servers


def test_topics_groups_and_acls_come_with_the_same_offsets(
    ottla: Ottla, source: str, target: str
) -> None:
    fill(source, ottla)
    first = ottla("migrate", "--from", source, "--json", bootstrap=target)
    assert first.exit_code == 0, first.errors
    assert {row["lag"] for row in first.json["partitions"]} == {0}
    assert len(first.json["partitions"]) == len(PLACES)
    with (
        Cluster(target, retry_timeout_ms=120_000) as cluster,
        pytest.raises(BrokerError, match="policy violation"),
    ):
        produce(cluster, {ORDERS[0]: batch(b"too early")})
    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        write_orders(cluster, 1)
    last = ottla("migrate", "--from", source, *CUT_OVER, bootstrap=target)
    assert (last.exit_code, last.json["cut_over"]) == (0, True), last.errors
    assert logs_of(target) == logs_of(source)
    assert state_of(target) == state_of(source)
    with Cluster(target, retry_timeout_ms=120_000) as cluster:
        assert produce(cluster, {TABLE: batch(b"mine")})[TABLE] == 1026
    again = ottla("migrate", "--from", source, *CUT_OVER, bootstrap=target)
    assert (again.exit_code, again.json["done"]) == (0, ["empty", "orders", "table"])


def test_a_move_under_load_has_every_record_once(ottla: Ottla, source: str, target: str) -> None:
    topic_partition = TopicPartition("busy", 0)
    more = TopicPartition("busy", 1)
    stopping = threading.Event()
    written: list[int] = []

    def write() -> None:
        with Cluster(source, retry_timeout_ms=120_000) as cluster:
            producer = init_producer(cluster)
            while not stopping.is_set():
                sent = batch(b"x" * 2000, producer=producer, sequence=len(written))
                written.append(produce(cluster, {topic_partition: sent})[topic_partition])

    with Cluster(source, retry_timeout_ms=120_000) as cluster:
        ensure_topic(cluster, "busy", partitions=1)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            command = ("migrate", "--from", source, "--topic", "busy")
            for _ in range(3):
                passed = ottla(*command, "--json", bootstrap=target)
                assert passed.exit_code == 0, passed.errors
            busy = ottla(*command, *CUT_OVER, "--wait", "0", bootstrap=target)
            assert busy.exit_code == 1
            assert "records still come into busy" in busy.errors
        finally:
            stopping.set()
            writer.join()
        add_partitions(cluster, "busy", 2)
        cluster.retry(lambda: produce(cluster, {more: batch(b"new")}))
        last = ottla(*command, *CUT_OVER, bootstrap=target)
        assert (last.exit_code, last.json["cut_over"]) == (0, True), last.errors
        with Cluster(target, retry_timeout_ms=120_000) as other:
            assert list_offsets(other, {more: LATEST})[more] == 1
            data = read_raw(other, topic_partition)
            assert [header.base_offset for _, header in iterate_headers(data)] == written
            assert without_epochs(data) == without_epochs(read_raw(cluster, topic_partition))


def test_a_topic_that_is_here_already_is_refused(ottla: Ottla, source: str, target: str) -> None:
    for bootstrap in (source, target):
        with Cluster(bootstrap, retry_timeout_ms=120_000) as cluster:
            ensure_topic(cluster, "both", partitions=1)
    outcome = ottla("migrate", "--from", source, "--topic", "both", bootstrap=target)
    assert outcome.exit_code == 1
    assert "both exists here already" in outcome.errors


def test_answers_that_fail_or_are_lost_lose_and_repeat_nothing(ottla: Ottla, source: str) -> None:
    topic_partition = TopicPartition("shaken", 0)
    with (
        EmbeddedBroker(config=SECURE) as broker,
        Cluster(source, retry_timeout_ms=120_000) as cluster,
        Cluster(broker.bootstrap_servers, retry_timeout_ms=120_000) as other,
    ):
        ensure_topic(cluster, "shaken", partitions=1)
        for _ in range(20):
            produce(cluster, {topic_partition: batch(b"x" * 300_000)})
        broker.faults.drop_next("ImportRecords", 2)
        broker.faults.fail_next("ImportRecords", "NOT_LEADER_OR_FOLLOWER", 2)
        broker.faults.drop_next("ImportRecords", 2)
        command = ("migrate", "--from", source, "--topic", "shaken")
        outcome = ottla(*command, *CUT_OVER, bootstrap=broker.bootstrap_servers)
        assert (outcome.exit_code, outcome.json["cut_over"]) == (0, True), outcome.errors
        assert without_epochs(read_raw(other, topic_partition)) == without_epochs(
            read_raw(cluster, topic_partition)
        )


@pytest.mark.process
def test_it_follows_until_it_is_told_to_stop(ottla: Ottla, source: str, target: str) -> None:
    topic_partition = TopicPartition("followed", 0)
    command = ("migrate", "--from", source, "--topic", "followed", "--follow")
    with (
        Cluster(source, retry_timeout_ms=120_000) as cluster,
        Cluster(target, retry_timeout_ms=120_000) as other,
    ):
        ensure_topic(cluster, "followed", partitions=1)
        produce(cluster, {topic_partition: batch(b"before")})
        process = start_ottla(*command, "--interval", "0.1", bootstrap=target)
        with process:
            for count in (1, 2):
                while (
                    "followed" not in other.topics(["followed"])
                    or _end(other, topic_partition) < count
                ):
                    assert process.poll() is None, process.communicate()
                    time.sleep(0.05)
                produce(cluster, {topic_partition: batch(b"more")})
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=240)
        assert (process.returncode, errors) == (130, b"")
        produce(cluster, {topic_partition: batch(b"last")})
        last = ottla(*command, "--cut-over", "--interval", "0.01", bootstrap=target)
        assert last.exit_code == 0, last.errors
        assert "open for producers here" in last.output
        assert without_epochs(read_raw(other, topic_partition)) == without_epochs(
            read_raw(cluster, topic_partition)
        )


def _end(cluster: Cluster, topic_partition: TopicPartition) -> int:
    return list_offsets(cluster, {topic_partition: LATEST})[topic_partition] or 0
