"""Everyday commands."""

import json
from collections.abc import Iterator

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.conftest import Ottla

from ottla.cli.topics.elect_leaders import summarise

pytestmark = pytest.mark.process

TOPIC = "cli-everyday"


@pytest.fixture
def bootstrap(own_broker: BrokerProcess, ottla: Ottla) -> Iterator[str]:
    address = own_broker.bootstrap
    ottla("topics", "create", TOPIC, "--partitions", "2", bootstrap=address)
    for number in range(6):
        partition = ("--partition", str(number % 2))
        assert ottla("produce", TOPIC, str(number), *partition, bootstrap=address).exit_code == 0
    yield address
    ottla("topics", "delete", TOPIC, bootstrap=address)


def test_the_tail_is_that_of_the_topic(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("consume", TOPIC, "--tail", "3", bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.output) == (0, "3\n4\n5\n")


@pytest.mark.parametrize("options", [("--tail", "0"), ("--tail", "1", "--group", "g")])
def test_a_tail_that_cannot_be(ottla: Ottla, options: tuple[str, ...]) -> None:
    assert ottla("consume", TOPIC, *options).exit_code == 2


def test_records_are_deleted(ottla: Ottla, bootstrap: str) -> None:
    command = ("topics", "delete-records", TOPIC, "--json")
    first = ottla(*command, "--before", "1", "--partition", "0", bootstrap=bootstrap)
    assert first.json["partitions"] == [{"partition": 0, "start_offset": 1}]
    everything = ottla(*command, "--before", "latest", bootstrap=bootstrap)
    assert [row["start_offset"] for row in everything.json["partitions"]] == [3, 3]
    beyond = ottla(*command, "--before", "99", bootstrap=bootstrap)
    assert beyond.exit_code == 1
    assert ottla(*command, "--before", "soon", bootstrap=bootstrap).exit_code == 2


def test_a_healthy_cluster(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("cluster", "status", bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.output) == (0, "healthy: 1 node\n")
    assert ottla("topics", "unhealthy", "--json", bootstrap=bootstrap).json == []
    elected = ottla("topics", "elect-leaders", TOPIC, bootstrap=bootstrap)
    assert (elected.exit_code, elected.output) == (0, "0 partitions have a new leader\n")


def test_what_many_partitions_have_in_common_is_said_once() -> None:
    down = {f"orders-{number}": "broker 3 is down" for number in range(7)}
    lines = summarise(down | {"notes-0": "broker 2 is down"})
    shown = "orders-0, orders-1, orders-2, orders-3, orders-4"
    assert lines == [f"{shown} and 2 more: broker 3 is down", "notes-0: broker 2 is down"]


def test_disk_use(ottla: Ottla, bootstrap: str) -> None:
    rows = ottla("topics", "disk", "--json", bootstrap=bootstrap).json
    (row,) = [row for row in rows if row["topic"] == TOPIC]
    assert row["replicas"] == 2
    assert row["bytes"] > 0


def test_the_lag_of_all_groups(ottla: Ottla, bootstrap: str) -> None:
    read = ("consume", TOPIC, "--group", "everyday", "--from-beginning", "--count", "4", "--json")
    assert len(list(map(json.loads, ottla(*read, bootstrap=bootstrap).output.splitlines()))) == 4
    rows = ottla("groups", "lag", "--json", bootstrap=bootstrap).json
    (row,) = [row for row in rows if row["group"] == "everyday"]
    assert row["members"] == 0
    assert row["lag"] <= 2  # A partition that was never read has no offset and no lag.
    ottla("groups", "delete", "everyday", bootstrap=bootstrap)


def test_features_are_listed_and_upgraded(ottla: Ottla, own_broker: BrokerProcess) -> None:
    address = own_broker.bootstrap
    rows = {
        row["feature"]: row for row in ottla("features", "list", "--json", bootstrap=address).json
    }
    assert rows["transaction.version"] == {
        "feature": "transaction.version",
        "level": 2,
        "lowest": 0,
        "highest": 2,
    }
    nothing = ottla("features", "upgrade", bootstrap=address)
    assert (nothing.exit_code, nothing.output) == (0, "there is nothing to upgrade\n")
    lower = ottla("features", "upgrade", "transaction.version", "--level", "1", bootstrap=address)
    assert lower.exit_code == 1
    assert "ask for a downgrade" in lower.errors
    unknown = ottla("features", "upgrade", "no.such", bootstrap=address)
    assert unknown.exit_code == 1
    assert "there is no feature no.such" in unknown.errors
