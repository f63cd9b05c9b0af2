"""Brokers with an authorizer: an Ottla node, and Apache Kafka if available."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.peers.kafka import VERSION
from tests.broker_process import BrokerProcess
from tests.clients.authorization.asked import init_producer_id, offset_commit
from tests.clients.authorization.case import GROUP, LITERAL, TOPIC, TOPIC_DENIED, Case, World
from tests.clients.authorization.entities import codes, request
from tests.clients.authorization.table import CASES, OWN_CASES
from tests.clients.wire import Wire
from tests.fork_server import REPOSITORY
from tests.ports import HOST, ReservedPort

from ottla.protocol.errors import ErrorCode
from ottla.security.acls import Operation, ResourceType
from ottla.security.scram import ScramMechanism, salted_password

_, SHA_512 = ScramMechanism

ADMIN, PASSWORD = "admin", "secret"
ALL_CASES = (*CASES, *OWN_CASES)
USERS = tuple(f"user-{number}" for number in range(len(ALL_CASES)))
SPARE = "spare"  # Used by no case; it has no access until a test grants it some.
TOPICS = (TOPIC, "doomed-1", "doomed-2")
READY_S = 120
LIBRARIES = REPOSITORY / "benchmarks" / ".cache" / f"kafka-{VERSION}"

OTTLA = f"""\
listeners: SASL_PLAINTEXT://{HOST}:{{port}},PLAINTEXT://{HOST}:{{nodes}}
inter.broker.listener.name: PLAINTEXT
sasl.enabled.mechanisms: PLAIN
sasl.plain.without.tls: true
authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users: User:admin;User:ANONYMOUS
"""
KAFKA = f"""\
process.roles=broker,controller
node.id=1
listeners=SASL_PLAINTEXT://{HOST}:{{port}},CONTROLLER://{HOST}:{{nodes}},NODES://{HOST}:{{brokers}}
advertised.listeners=SASL_PLAINTEXT://{HOST}:{{port}},NODES://{HOST}:{{brokers}}
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT,NODES:PLAINTEXT
inter.broker.listener.name=NODES
controller.listener.names=CONTROLLER
controller.quorum.voters=1@{HOST}:{{nodes}}
log.dirs={{directory}}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.min.isr=1
sasl.enabled.mechanisms=PLAIN
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
listener.name.sasl_plaintext.plain.sasl.jaas.config={{jaas}}
"""


class AuthorizingBroker:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.world: World

    def user_of(self, case: Case) -> str:
        return USERS[ALL_CASES.index(case)]

    def connect(self, user: str) -> Wire:
        wire = Wire(self.bootstrap)
        handshake = wire.call(request(17, 1, mechanism="PLAIN"))
        assert handshake.error_code is ErrorCode.none
        login = f"\0{user}\0{PASSWORD}".encode()
        answer = wire.call(request(36, 2, auth_bytes=login))
        assert answer.error_code is ErrorCode.none, answer
        return wire

    def prepare(self) -> None:
        with self.connect(ADMIN) as wire:
            topics = [
                {"name": name, "num_partitions": 1, "replication_factor": 1} for name in TOPICS
            ]
            _call_until_done(wire, request(19, 7, topics=topics), "topic_already_exists")
            found = wire.call(request(3, 12, topics=[{"name": TOPIC}]))
            self.world = World(found.topics[0].topic_id, found.brokers[0].node_id)
            self._grant(wire)
            for key, key_type in ((GROUP, 0), ("x", 1)):
                _call_until_done(wire, request(10, 4, key_type=key_type, coordinator_keys=[key]))
            _call_until_done(wire, offset_commit(TOPIC))
            _call_until_done(wire, init_producer_id(None))

    def _grant(self, wire: Wire) -> None:
        creations = [
            {
                "resource_type": int(ResourceType[kind.upper()]),
                "resource_name": name,
                "principal": f"User:{self.user_of(case)}",
                "host": "*",
                "operation": int(Operation[operation]),
                "permission_type": 3,
            }
            for case in ALL_CASES
            for kind, name, operation in case.has
        ]
        answer = wire.call(request(30, 3, creations=creations))
        assert {result.error_code for result in answer.results} == {ErrorCode.none}
        everything = request(
            29,
            3,
            resource_type_filter=1,
            pattern_type_filter=1,
            operation=1,
            permission_type=1,
        )
        deadline = time.monotonic() + READY_S
        while sum(len(resource.acls) for resource in wire.call(everything).resources) < len(
            creations
        ):
            assert time.monotonic() < deadline, "the entries did not come"


def grant(wire: Wire, user: str, operation: Operation) -> None:
    """Write to the topic."""
    creation = {"resource_name": TOPIC, **_entry(user, operation)}
    answer = wire.call(request(30, 3, creations=[creation]))
    assert codes(answer) == {"none"}, answer


def revoke(wire: Wire, user: str, operation: Operation) -> None:
    entry = _entry(user, operation)
    wanted = {
        "resource_type_filter": entry["resource_type"],
        "resource_name_filter": TOPIC,
        "pattern_type_filter": LITERAL,
        "principal_filter": entry["principal"],
        "host_filter": entry["host"],
        "operation": entry["operation"],
        "permission_type": entry["permission_type"],
    }
    answer = wire.call(request(31, 3, filters=[wanted]))
    assert len(answer.filter_results[0].matching_acls) == 1, answer


def _entry(user: str, operation: Operation) -> dict[str, Any]:
    return {
        "resource_type": int(ResourceType.TOPIC),
        "principal": f"User:{user}",
        "host": "*",
        "operation": int(operation),
        "permission_type": 3,
    }


def add_users(wire: Wire, names: Sequence[str]) -> None:
    salt = b"0123456789"
    salted = salted_password(SHA_512, PASSWORD.encode(), salt, 4096)
    upsertions = [
        {"name": name, "mechanism": 2, "iterations": 4096, "salt": salt, "salted_password": salted}
        for name in names
    ]
    answer = wire.call(request(51, 0, upsertions=upsertions))
    assert {result.error_code for result in answer.results} == {ErrorCode.none}


def call_until_denied(wire: Wire, asked: object, *, denied: bool = True) -> None:
    """A broker learns of a change a moment after the controller has answered."""
    deadline = time.monotonic() + READY_S
    while (codes(wire.call(asked)) >= TOPIC_DENIED) is not denied:
        assert time.monotonic() < deadline, asked


def _call_until_done(wire: Wire, asked: object, *also: str) -> None:
    deadline = time.monotonic() + READY_S
    while not (found := codes(wire.call(asked))) <= {"none", *also}:
        assert time.monotonic() < deadline, found


@contextmanager
def ottla(directory: Path) -> Iterator[AuthorizingBroker]:
    port, nodes = ReservedPort(), ReservedPort()
    config = directory / "broker.yaml"
    config.write_text(OTTLA.format(port=port.number, nodes=nodes.number))
    config.chmod(0o600)
    arguments = (
        f"--listener=SASL_PLAINTEXT://{HOST}:{port.number}",
        f"--listener=PLAINTEXT://{HOST}:{nodes.number}",
    )
    with BrokerProcess(directory, "--config", str(config), *arguments, port=nodes):
        with Wire(f"{HOST}:{nodes.number}") as anonymous:
            add_users(anonymous, (ADMIN, SPARE, *USERS))
        yield AuthorizingBroker(f"{HOST}:{port.number}")


@contextmanager
def apache_kafka(directory: Path) -> Iterator[AuthorizingBroker]:
    if not (LIBRARIES / "resolved").exists():
        pytest.skip(f"Apache Kafka {VERSION} is not in the benchmarks' cache; `make bench` gets it")
    ports = [ReservedPort() for _ in range(3)]
    port, nodes, brokers = (reserved.number for reserved in ports)
    users = " ".join(f'user_{name}="{PASSWORD}"' for name in (ADMIN, SPARE, *USERS))
    jaas = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    properties = directory / "server.properties"
    properties.write_text(
        KAFKA.format(port=port, nodes=nodes, brokers=brokers, directory=directory, jaas=jaas)
    )
    java = ["java", "-Xmx512m", "-cp", f"{LIBRARIES}/libs/*"]
    logging = f"-Dlog4j2.configurationFile={LIBRARIES / 'log4j2.yaml'}"
    cluster_id = "4L6g3nShT-eMCtK--X86sw"
    storage = ["kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(properties)]
    subprocess.run([*java, *storage], check=True, capture_output=True, timeout=120)
    with (directory / "kafka.log").open("wb") as log:
        process = subprocess.Popen(
            [java[0], logging, *java[1:], "kafka.Kafka", str(properties)], stdout=log, stderr=log
        )
    try:
        _wait_until_it_listens(process, port)
        yield AuthorizingBroker(f"{HOST}:{port}")
    finally:
        process.terminate()
        process.wait(60)


def _wait_until_it_listens(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + READY_S
    while True:
        try:
            with Wire(f"{HOST}:{port}") as wire:
                wire.call(request(18, 3, client_software_name="tests", client_software_version="1"))
                return
        except (OSError, EOFError):
            assert process.poll() is None, "Kafka ended"
            assert time.monotonic() < deadline, "Kafka did not start"
            time.sleep(0.2)
