from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from tests.cli.conftest import Ottla
from tests.clients.transactional import ConfluentProducer

pytestmark = pytest.mark.process

TOPIC, TRANSACTIONAL_ID = "cli-transactions", "cli-writer"


@pytest.fixture
def producer(ottla: Ottla, bootstrap: str) -> Iterator[ConfluentProducer]:
    """It has written one record, and not committed it."""
    ottla("topics", "create", TOPIC, bootstrap=bootstrap)
    producer = ConfluentProducer(bootstrap, TRANSACTIONAL_ID)
    producer.begin()
    producer.send(TOPIC, 0, b"value")
    yield producer
    ottla("topics", "delete", TOPIC, bootstrap=bootstrap)


def test_list(producer: ConfluentProducer, ottla: Ottla, bootstrap: str) -> None:
    lines = ottla("transactions", "list", "--state", "ongoing", bootstrap=bootstrap).output
    title, *rows = lines.splitlines()
    assert title.split() == ["TRANSACTIONAL", "ID", "COORDINATOR", "PRODUCER", "ID", "STATE"]
    (row,) = (row.split() for row in rows if row.startswith(TRANSACTIONAL_ID))
    assert row[1] == "1"
    assert row[3] == "Ongoing"
    long = ottla(
        "transactions", "list", "--longer-than-ms", "9999999", "--json", bootstrap=bootstrap
    )
    assert TRANSACTIONAL_ID not in {one["transactional_id"] for one in long.json}


def test_a_state_that_is_none(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("transactions", "list", "--state", "Lost", bootstrap=bootstrap)
    assert outcome.exit_code == 2
    assert "Lost is not a state of transactions, which are Empty, Ongoing," in outcome.errors


def test_describe(producer: ConfluentProducer, ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("transactions", "describe", TRANSACTIONAL_ID, "--json", bootstrap=bootstrap)
    assert outcome.json["state"] == "Ongoing"
    assert outcome.json["partitions"] == [f"{TOPIC}-0"]
    assert outcome.json["started"].startswith("20")
    lines = ottla("transactions", "describe", TRANSACTIONAL_ID, bootstrap=bootstrap).output
    assert ["state", "Ongoing"] in [line.split() for line in lines.splitlines()]


def test_abort(producer: ConfluentProducer, ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("transactions", "abort", TRANSACTIONAL_ID, bootstrap=bootstrap)
    assert outcome == (0, f"aborted the transaction of {TRANSACTIONAL_ID}\n", "")
    with pytest.raises(KafkaException):
        producer.commit()
    again = ottla("transactions", "abort", TRANSACTIONAL_ID, bootstrap=bootstrap)
    assert again.exit_code == 1
    assert "has no open transaction: its state is Empty" in again.errors
    described = ottla("transactions", "describe", TRANSACTIONAL_ID, "--json", bootstrap=bootstrap)
    assert described.json["started"] is None


@pytest.mark.parametrize("command", ["describe", "abort"])
def test_what_is_not_there(ottla: Ottla, bootstrap: str, command: str) -> None:
    outcome = ottla("transactions", command, "nobody", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "there is no transactional id nobody" in outcome.errors


@pytest.mark.parametrize("command", ["list", "describe", "abort"])
def test_nobody_listens(ottla: Ottla, command: str) -> None:
    arguments = [] if command == "list" else ["x"]
    outcome = ottla("transactions", command, *arguments, bootstrap="127.0.0.1:1")
    assert outcome.exit_code == 3
