from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType
from tests.cli.conftest import Ottla
from tests.clients.confluent_client import ConfluentClient
from tests.clients.transaction_requests import TransactionWire
from tests.clients.transactional import ConfluentProducer
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.process

TOPIC, TRANSACTIONAL_ID = "cli-transactions", "cli-writer"


@pytest.fixture
def producer(ottla: Ottla, bootstrap: str) -> Iterator[ConfluentProducer]:
    """An open transaction with one record."""
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
    assert TRANSACTIONAL_ID not in {transaction["transactional_id"] for transaction in long.json}


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


@pytest.fixture
def without_verification(bootstrap: str) -> Iterator[None]:
    confluent = ConfluentClient(bootstrap)
    key = "transaction.partition.verification.enable"
    confluent.alter_brokers(AlterConfigOpType.SET, key, "false")
    yield
    confluent.alter_brokers(AlterConfigOpType.DELETE, key, None)


@pytest.mark.usefixtures("without_verification")
def test_hanging(producer: ConfluentProducer, ottla: Ottla, bootstrap: str) -> None:
    """One partition has a known transaction and a hanging one."""
    with Wire(bootstrap) as wire:
        unknown = TransactionWire(wire, "cli-hanging")
        late = unknown.producer()
        assert unknown.produce(late, TOPIC, b"late", version=11).error_code is ErrorCode.none

    def hanging(*options: str) -> list[int]:
        arguments = ("--topic", TOPIC, "--json", *options)
        outcome = ottla("transactions", "hanging", *arguments, bootstrap=bootstrap).json
        return [row["producer_id"] for row in outcome["transactions"]]

    assert hanging("--longer-than-ms", str(2**47)) == []
    assert hanging("--longer-than-ms", "0") == [late.id]
    lines = ottla("transactions", "hanging", bootstrap=bootstrap).output
    assert [TOPIC, "0", str(late.id)] in [line.split()[:3] for line in lines.splitlines()]
    assert hanging("--abort") == [late.id]
    assert hanging("--longer-than-ms", "0") == []
    producer.commit()


def test_hanging_in_no_topic(ottla: Ottla, bootstrap: str) -> None:
    outcome = ottla("transactions", "hanging", "--topic", "cli-nowhere", bootstrap=bootstrap)
    assert outcome.exit_code == 1
    assert "`ottla topics list` shows the topics" in outcome.errors
