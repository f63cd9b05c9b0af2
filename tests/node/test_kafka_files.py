"""Configuration files of Apache Kafka."""

import logging
from pathlib import Path

import pytest
from tests.log_messages import messages_of

from ottla.network.config import LISTENERS
from ottla.network.endpoints import parse_listeners
from ottla.network.security_config import SecurityConfig, SecurityProtocol
from ottla.node.config import (
    BROKER_SCHEMA,
    DECLARED_BROKER_KEYS,
    NODE_ID,
    QUORUM_BOOTSTRAP_SERVERS,
    load_config,
    log_without_effect,
)
from ottla.node.config_file import ConfigError, parse_properties
from ottla.node.exposure import validate_locked
from ottla.node.kafka_keys import read_table
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import ConfigType, ConfigValues
from ottla.storage.broker_config import LOG_DIRS

# Kafka 4.3's config/server.properties, without comments.
SHIPPED = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,\\
    SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def load(directory: Path, text: str, **settings: object) -> dict[str, object]:
    path = directory / "server.properties"
    path.write_text(text, encoding="utf-8")
    return load_config(ServeSettings(config_file=path, **settings), {})  # type: ignore[arg-type]


def test_nodes_on_other_loopback_addresses_are_not_this_one(tmp_path: Path) -> None:
    text = "listeners=A://127.0.0.2:9093\nlistener.security.protocol.map=A:PLAINTEXT\n"
    servers = "controller.quorum.bootstrap.servers=127.0.0.1:9093,127.0.0.2:9093\n"
    values = ConfigValues(load(tmp_path, text + servers))
    assert values[QUORUM_BOOTSTRAP_SERVERS] == ("127.0.0.1:9093",)


def test_the_file_that_kafka_ships_starts_a_node_on_loopback(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = load(tmp_path, SHIPPED)
    validate_locked(given)
    values = ConfigValues(given)
    assert values[LISTENERS] == ("PLAINTEXT://localhost:9092", "CONTROLLER://localhost:9093")
    assert values[QUORUM_BOOTSTRAP_SERVERS] == ()  # A node does not join itself.
    assert values[LOG_DIRS] == ("/tmp/kraft-combined-logs",)
    with caplog.at_level(logging.WARNING):
        log_without_effect(given)
    [message] = messages_of("ottla.node.config", caplog)
    assert message.endswith("num.io.threads, num.network.threads, process.roles")


def test_open_listeners_stay_open_if_they_are_wanted(tmp_path: Path) -> None:
    values = ConfigValues(load(tmp_path, SHIPPED, insecure=True))
    assert values[LISTENERS][0] == "PLAINTEXT://:9092"


def test_listeners_that_others_are_sent_to_are_refused_without_a_lock(tmp_path: Path) -> None:
    text = SHIPPED.replace("localhost:9092", "broker1.example:9092")
    with pytest.raises(ConfigError, match="is open beyond this machine"):
        validate_locked(load(tmp_path, text))


def test_a_node_to_join_that_somebody_names_at_the_start_is_kept(tmp_path: Path) -> None:
    values = ConfigValues(load(tmp_path, SHIPPED, join=("localhost:9092",)))
    assert values[QUORUM_BOOTSTRAP_SERVERS] == ("localhost:9092",)


def test_older_names_of_keys(tmp_path: Path) -> None:
    text = "log.dir=/data\nbroker.id=7\ncontroller.quorum.voters=7@localhost:9092,8@other:9092\n"
    values = ConfigValues(load(tmp_path, text))
    assert (values[LOG_DIRS], values[NODE_ID]) == (("/data",), 7)
    assert values[QUORUM_BOOTSTRAP_SERVERS] == ("other:9092",)
    both = ConfigValues(load(tmp_path, text + "log.dirs=/other\nnode.id=8\n"))
    assert (both[LOG_DIRS], both[NODE_ID]) == (("/other",), 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("num.io.thread=8\n", "did you mean num.io.threads?"),
        ("num.io.threads=many\n", "Not a number of type INT"),
        ("controller.quorum.voters=localhost:9092\n", "is not of the form ID@HOST:PORT"),
    ],
)
def test_a_wrong_line_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(tmp_path, text)
    assert message in str(refused.value)


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# no\n ! no\na=1\nb : two words \nc\\=d=x\\ty\n"
        "e=one,\\\n   two\nf\n g  h\\\\\na=2\n\\u0041=z"
    )
    assert parse_properties(text) == {
        "a": "2",
        "b": "two words ",
        "c=d": "x\ty",
        "e": "one,two",
        "f": "",
        "g": "h\\",
        "A": "z",
    }


def test_the_listener_of_controllers_needs_no_protocol() -> None:
    given: dict[str, object] = {"controller.listener.names": ("CONTROLLER",)}
    listeners = parse_listeners(("PLAINTEXT://localhost:1", "CONTROLLER://localhost:2"))
    security = SecurityConfig.of(ConfigValues(given), listeners)
    assert security.listeners["CONTROLLER"].protocol is SecurityProtocol.PLAINTEXT


def test_nodes_use_the_listener_of_the_protocol_that_was_set() -> None:
    listeners = parse_listeners(("OUTSIDE://localhost:1", "PLAINTEXT://localhost:2"))
    given: dict[str, object] = {
        "listener.security.protocol.map": "OUTSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    }
    assert SecurityConfig.of(ConfigValues(given), listeners).inter_broker_listener == "OUTSIDE"
    given["security.inter.broker.protocol"] = "PLAINTEXT"
    assert SecurityConfig.of(ConfigValues(given), listeners).inter_broker_listener == "PLAINTEXT"


def test_every_key_of_kafka_is_there_once_with_its_type() -> None:
    declared = {key.name for key in DECLARED_BROKER_KEYS}
    for name, row in read_table().items():
        key = BROKER_SCHEMA[name]
        assert (
            key.has_effect or name not in declared or name.startswith(("log.local", "compression"))
        )
        if name not in declared:
            assert (key.type, key.dynamic) == (row.type, row.dynamic)
    assert BROKER_SCHEMA["ssl.protocol"].type is ConfigType.STRING


def test_a_key_without_effect_can_be_set_for_one_listener() -> None:
    key = BROKER_SCHEMA["listener.name.plaintext.ssl.cipher.suites"]
    assert not key.has_effect
