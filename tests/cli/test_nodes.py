from collections.abc import Iterator

import pytest
from tests.broker_process import BrokerProcess
from tests.cli.conftest import Ottla

from ottla import __version__

pytestmark = pytest.mark.process


@pytest.fixture
def bootstrap(own_broker: BrokerProcess) -> str:
    return own_broker.bootstrap


def test_a_node_is_listed(ottla: Ottla, bootstrap: str) -> None:
    ottla("topics", "create", "listed", "--partitions", "2", bootstrap=bootstrap)
    (row,) = ottla("node", "list", "--json", bootstrap=bootstrap).json
    assert (row["node"], row["state"], row["rack"]) == (1, "active", None)
    assert row["address"].endswith(bootstrap.rpartition(":")[2])
    assert row["leaders"] >= 2
    assert row["leaders"] == row["replicas"]
    assert row["out_of_sync"] == 0
    assert row["version"] == __version__


def test_nodes_are_listed_in_columns(ottla: Ottla, bootstrap: str) -> None:
    title, line = ottla("node", "list", bootstrap=bootstrap).output.splitlines()
    assert title.split()[:4] == ["NODE", "ADDRESS", "RACK", "STATE"]
    assert [line.split()[column] for column in (0, 2, 3)] == ["1", "-", "active"]


def test_the_only_node_cannot_be_drained(ottla: Ottla, bootstrap: str) -> None:
    ottla("topics", "create", "drained", bootstrap=bootstrap)
    outcome = ottla("node", "drain", "1", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "there is no other active node" in outcome.errors


def test_a_node_that_could_not_be_drained_goes_on_as_before(ottla: Ottla, bootstrap: str) -> None:
    ottla("topics", "create", "kept", bootstrap=bootstrap)
    ottla("node", "drain", "1", bootstrap=bootstrap)
    (row,) = ottla("node", "list", "--json", bootstrap=bootstrap).json
    assert row["state"] == "active"


@pytest.fixture
def undrained(ottla: Ottla, bootstrap: str) -> Iterator[None]:
    """At the end, even if the test failed: other tests use the same broker."""
    yield
    ottla("node", "undrain", "1", bootstrap=bootstrap)


@pytest.mark.usefixtures("undrained")
def test_a_drain_is_shown_and_taken_back(ottla: Ottla, bootstrap: str) -> None:
    cordoned = ("--broker", "1", "--set", "cordoned.log.dirs=*")
    ottla("topics", "create", "before", bootstrap=bootstrap)
    ottla("configs", "alter", *cordoned, bootstrap=bootstrap)
    (row,) = ottla("node", "list", "--json", bootstrap=bootstrap).json
    assert row["state"] == "draining"
    refused = ottla("topics", "create", "nowhere", bootstrap=bootstrap)
    assert "0 are registered and not drained" in refused.errors
    assert ottla("node", "undrain", "1", bootstrap=bootstrap).exit_code == 0
    assert ottla("topics", "create", "again", bootstrap=bootstrap).exit_code == 0


@pytest.mark.parametrize("command", ["drain", "undrain", "remove"])
def test_a_node_that_is_not_there(ottla: Ottla, bootstrap: str, command: str) -> None:
    outcome = ottla("node", command, "7", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "there is no node 7" in outcome.errors


def test_a_running_node_is_not_removed(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("node", "remove", "1", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "node 1 is running; stop it first" in outcome.errors


def test_one_node_is_balanced(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("rebalance", bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.output) == (0, "replicas and leaders are even already\n")
    assert ottla("rebalance", "--dry-run", "--json", bootstrap=bootstrap).json == []


def test_a_step_of_nothing_is_refused(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("rebalance", "--step", "0", bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.errors) == (2, "ottla: --step 0 is less than 1\n")


def test_a_topic_that_has_the_replicas_already(ottla: Ottla, bootstrap: str) -> None:
    ottla("topics", "create", "reassigned", bootstrap=bootstrap)
    for option in (("--replicas", "1"), ("--replication-factor", "1")):
        outcome = ottla("topics", "reassign", "reassigned", *option, bootstrap=bootstrap)
        assert (outcome.exit_code, outcome.output) == (
            0,
            "topic reassigned already has these replicas\n",
        )


@pytest.mark.parametrize(
    ("options", "exit_code", "message"),
    [
        ((), 2, "give one of --replicas, --replication-factor and --cancel"),
        (("--replicas", "1", "--cancel"), 2, "give one of"),
        (("--replicas", "one"), 2, "is not a list of ids"),
        (("--replication-factor", "0"), 2, "is less than 1"),
        (("--replication-factor", "2"), 1, "there is no other active node"),
        (("--replicas", "9"), 1, "no such broker is registered"),
        (("--replicas", "1,1"), 1, "includes the broker 1 more than once"),
        (("--cancel",), 1, "nothing is being reassigned there"),
        (("--partition", "5", "--replicas", "1"), 1, "there is no partition refused-5"),
    ],
)
def test_a_wrong_reassignment(
    ottla: Ottla, bootstrap: str, options: tuple[str, ...], exit_code: int, message: str
) -> None:
    ottla("topics", "create", "refused", "--if-not-exists", bootstrap=bootstrap)
    outcome = ottla("topics", "reassign", "refused", *options, bootstrap=bootstrap)
    assert outcome.exit_code == exit_code
    assert message in outcome.errors


def test_a_reassignment_of_a_topic_that_is_not_there(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("topics", "reassign", "nothing", "--replicas", "1", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "there is no topic nothing" in outcome.errors
