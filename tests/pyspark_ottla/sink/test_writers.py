"""The methods that Spark calls, without Spark; `write` needs a task and a real Spark."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql.types import StringType, StructType
from tests.broker_process import BrokerProcess
from tests.pyspark_ottla.sink.written import portion, values

from ottla.client.wire.cluster import Cluster
from ottla.client.wire.transactions import list_open_ids
from pyspark_ottla.sink.identity import BatchName, pattern_of
from pyspark_ottla.sink.options import SinkOptions, parse_sink_options
from pyspark_ottla.sink.prepare import prepare
from pyspark_ottla.sink.writers import ORDINARY_TRANSACTIONS, StreamWriter, TaskMessage

SCHEMA = StructType().add("value", StringType())


@pytest.fixture(scope="module")
def without_two_phase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    setting = "transaction.two.phase.commit.enable=false"
    directory: Path = tmp_path_factory.mktemp("ordinary")
    with BrokerProcess(directory, "--set", setting) as broker:
        yield broker.bootstrap


def parse(bootstrap: str, name: str, **others: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": bootstrap, "topic": name, "sinkid": name, **others}
    return parse_sink_options(given, is_stream=True)


def message(options: SinkOptions, batch_id: int, run_id: str) -> TaskMessage:
    """The message of a task that has written one row."""
    batch = BatchName(options.sink_id, batch_id, run_id)
    outcome = prepare(options, batch, "query", (0, 0), iter([portion(f"{batch_id}")]))
    return TaskMessage(run_id, "query", *outcome)


def test_a_broker_without_two_phase_commit_is_a_warning_in_each_run(
    without_two_phase: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = parse(without_two_phase, "ordinary")
    writer = StreamWriter(options, SCHEMA)
    for batch_id, run_id in enumerate(["first", "first", "second"]):
        writer.commit([message(options, batch_id, run_id)], batch_id)
    warnings = [record.getMessage() for record in caplog.records]
    assert warnings == [f"sink ordinary: {ORDINARY_TRANSACTIONS}"] * 2
    with Cluster(without_two_phase) as cluster:
        assert values(cluster, "ordinary") == ["0", "1", "2"]


def test_an_abort_drops_what_the_tasks_have_prepared(
    bootstrap: str, cluster: Cluster, topic: str
) -> None:
    options = parse(bootstrap, topic)
    StreamWriter(options, SCHEMA).abort([message(options, 0, "run"), None], 0)
    assert list_open_ids(cluster, pattern_of(topic)) == []
    assert values(cluster, topic) == []


def test_a_coordinator_that_is_somewhere_else_now_is_asked_for(
    bootstrap: str, cluster: Cluster, topic: str
) -> None:
    options = parse(bootstrap, topic)
    moved = replace(message(options, 0, "run"), coordinator=("127.0.0.1", 1))
    StreamWriter(options, SCHEMA).commit([moved], 0)
    assert list_open_ids(cluster, pattern_of(topic)) == []
    assert values(cluster, topic) == ["0"]


def test_a_batch_without_tasks_is_nothing_to_decide(bootstrap: str, topic: str) -> None:
    writer = StreamWriter(parse(bootstrap, topic), SCHEMA)
    writer.commit([], 0)
    writer.abort([None], 0)


def test_at_least_once_has_nothing_to_commit_or_abort() -> None:
    nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "delivery": "at_least_once"}
    writer = StreamWriter(parse_sink_options(nobody, is_stream=True), SCHEMA)
    writer.commit([TaskMessage("", "")], 0)
    writer.abort([TaskMessage("", "")], 0)
