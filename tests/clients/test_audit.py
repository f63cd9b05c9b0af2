"""The audit log of a broker with logins and an authorizer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.broker_process import BrokerProcess
from tests.clients.authorization.brokers import OTTLA, AuthorizingBroker, add_users
from tests.clients.authorization.entities import codes, request
from tests.clients.client import TIMEOUT_S
from tests.clients.wire import Wire
from tests.ports import HOST, ReservedPort

pytestmark = pytest.mark.process


class AuditedBroker(AuthorizingBroker):
    def __init__(self, bootstrap: str, process: BrokerProcess) -> None:
        super().__init__(bootstrap)
        self.process = process


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedBroker]:
    directory: Path = tmp_path_factory.mktemp("audited")
    port, nodes = ReservedPort(), ReservedPort()
    config = directory / "broker.yaml"
    text = OTTLA.format(port=port.number, nodes=nodes.number)
    config.write_text(text + "audit.topic.enable: true\n")
    config.chmod(0o600)
    arguments = [
        f"--listener=SASL_PLAINTEXT://{HOST}:{port.number}",
        f"--listener=PLAINTEXT://{HOST}:{nodes.number}",
        "--log-format=json",
    ]
    with BrokerProcess(directory, "--config", str(config), *arguments, port=nodes) as process:
        with Wire(process.bootstrap) as anonymous:
            add_users(anonymous, ("admin", "alice"))
        yield AuditedBroker(f"{HOST}:{port.number}", process)


def creation(name: str) -> object:
    topic = {"name": name, "num_partitions": 1, "replication_factor": 1}
    return request(19, 7, topics=[topic])


def read_topic(bootstrap: str, until: str) -> list[dict[str, object]]:
    """The audit events up to the change that names this."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "audit", "auto.offset.reset": "earliest"}
    )
    consumer.assign([TopicPartition("__audit_log", 0, 0)])
    events: list[dict[str, object]] = []
    try:
        while until not in str(events):
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, events
            if message.error() is None:
                events.append(json.loads(message.value() or b""))
    finally:
        consumer.close()
    return events


def test_logins_refusals_and_changes_are_lines_and_records(broker: AuditedBroker) -> None:
    with broker.connect("alice") as alice:
        assert "topic_authorization_failed" in codes(alice.call(creation("hers")))
    with Wire(broker.bootstrap) as stranger:
        stranger.call(request(17, 1, mechanism="PLAIN"))
        answer = stranger.call(request(36, 2, auth_bytes=b"\0alice\0geheim"))
        assert codes(answer) == {"sasl_authentication_failed"}
    with broker.connect("admin") as admin:
        assert codes(admin.call(creation("orders"))) == {"none"}

    events = read_topic(broker.process.bootstrap, until="orders")
    shown = [
        {key: event[key] for key in event if key not in ("time_ms", "node")} for event in events
    ]
    refused = "unknown user 'alice', or wrong password"
    where = {"host": HOST, "listener": "SASL_PLAINTEXT", "mechanism": "PLAIN"}
    for expected in (
        {"event": "login", "principal": "User:alice", **where},
        {
            "event": "access_refused",
            "principal": "User:alice",
            "host": HOST,
            "operation": "CREATE",
            "resource": "TOPIC:hers",
        },
        {"event": "login_refused", **where, "reason": refused},
        {
            "event": "change",
            "principal": "User:admin",
            "host": HOST,
            "action": "create_topics",
            "of": ["orders"],
            "outcome": "done",
            "client_id": "wire-test",
        },
    ):
        assert expected in shown

    lines = map(
        json.loads, filter(lambda line: '"audit"' in line, broker.process.log_text().split("\n"))
    )
    logged = [line["audit"] for line in lines if "audit" in line]
    assert [event for event in logged if event in shown] == shown
    users = next(event for event in shown if event.get("action") == "alter_users")
    assert users["of"] == ["set admin SCRAM-SHA-512", "set alice SCRAM-SHA-512"]
    assert "geheim" not in broker.process.log_text()
