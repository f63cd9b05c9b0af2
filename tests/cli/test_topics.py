from collections.abc import Iterator

import pytest
from tests.cli.conftest import Ottla

pytestmark = pytest.mark.process


@pytest.fixture
def topic(ottla: Ottla, bootstrap: str) -> Iterator[str]:
    ottla("topics", "create", "cli-topics", "--partitions", "2", bootstrap=bootstrap)
    yield "cli-topics"
    ottla("topics", "delete", "cli-topics", "--if-exists", bootstrap=bootstrap)


def test_create_and_delete(ottla: Ottla, bootstrap: str) -> None:
    created = ottla(
        "topics", "create", "cli-new", "--config", "retention.ms=1000", bootstrap=bootstrap
    )
    assert created == (0, "created topic cli-new\n", "")
    deleted = ottla("topics", "delete", "cli-new", bootstrap=bootstrap)
    assert deleted == (0, "deleted topic cli-new\n", "")


def test_creating_what_is_there(ottla: Ottla, bootstrap: str, topic: str) -> None:
    again = ottla("topics", "create", topic, bootstrap=bootstrap)
    assert (again.exit_code, again.output) == (1, "")
    assert "already exists" in again.errors
    assert "--if-not-exists" in again.errors
    accepted = ottla("topics", "create", topic, "--if-not-exists", "--json", bootstrap=bootstrap)
    assert accepted.json == {"topic": topic, "created": False}


def test_deleting_what_is_not_there(ottla: Ottla, bootstrap: str) -> None:
    failed = ottla("topics", "delete", "cli-nothing", bootstrap=bootstrap)
    assert (failed.exit_code, failed.output) == (1, "")
    assert failed.errors.startswith("ottla: cli-nothing: ")
    accepted = ottla("topics", "delete", "cli-nothing", "--if-exists", bootstrap=bootstrap)
    assert accepted == (0, "topic cli-nothing does not exist\n", "")


def test_the_topics_that_can_be_deleted_are(ottla: Ottla, bootstrap: str, topic: str) -> None:
    outcome = ottla("topics", "delete", "cli-nothing", topic, bootstrap=bootstrap)
    assert (outcome.exit_code, outcome.output) == (1, f"deleted topic {topic}\n")
    assert "cli-nothing" in outcome.errors


def test_list(ottla: Ottla, bootstrap: str, topic: str) -> None:
    lines = ottla("topics", "list", bootstrap=bootstrap).output.splitlines()
    assert lines[0].split("  ")[0] == "TOPIC"
    assert [line.split() for line in lines if line.startswith(topic)] == [[topic, "2", "1"]]
    rows = ottla("topics", "list", "--json", bootstrap=bootstrap).json
    assert {"topic": topic, "partitions": 2, "replication_factor": 1} in rows


def test_describe(ottla: Ottla, bootstrap: str, topic: str) -> None:
    ottla("produce", topic, "a", "b", "--partition", "1", bootstrap=bootstrap)
    [document] = ottla("topics", "describe", topic, "--json", bootstrap=bootstrap).json
    assert (document["topic"], document["internal"]) == (topic, False)
    first, second = document["partitions"]
    assert (first["start_offset"], first["end_offset"]) == (0, 0)
    assert (second["start_offset"], second["end_offset"]) == (0, 2)
    assert second["isr"] == second["replicas"] == [second["leader"]]
    plain = ottla("topics", "describe", topic, bootstrap=bootstrap).output.splitlines()
    assert plain[0] == f"{topic}  id {document['id']}"
    assert plain[1].split("  ")[0] == "PARTITION"
    assert len(plain) == 4


def test_describing_what_is_not_there(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("topics", "describe", "cli-nothing", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert outcome.errors.startswith("ottla: cli-nothing: Unknown topic")


def test_adding_partitions(ottla: Ottla, bootstrap: str, topic: str) -> None:
    grown = ottla("topics", "alter", topic, "--partitions", "3", bootstrap=bootstrap)
    assert grown == (0, f"topic {topic} now has 3 partitions\n", "")
    shrunk = ottla("topics", "alter", topic, "--partitions", "1", bootstrap=bootstrap)
    assert shrunk.exit_code == 1
    assert shrunk.errors.count("\n") == 1
