from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ottla.network.config import ADVERTISED_LISTENERS, LISTENERS
from ottla.node.config import BROKER_SCHEMA, NODE_ID, environment_name, load_config
from ottla.node.config_file import ConfigError
from ottla.node.config_reference import config_reference
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError
from ottla.storage.broker_config import LOG_DIRS, LOG_RETENTION_MS


def load(environment: dict[str, str] | None = None, **settings: object) -> ConfigValues:
    return ConfigValues(load_config(ServeSettings(**settings), environment or {}))  # type: ignore[arg-type]


def written(directory: Path, text: str) -> Path:
    path = directory / "broker.yaml"
    path.write_text(text)
    return path


def test_flags_beat_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "node.id: 1\nlog.retention.ms: 100\nnum.partitions: 3\n")
    environment = {"OTTLA_NODE_ID": "2", "OTTLA_LOG_RETENTION_MS": "200"}
    values = load(environment, config_file=file, overrides={"node.id": "3"})
    assert values[NODE_ID] == 3
    assert values[LOG_RETENTION_MS] == 200


def test_host_and_port_replace_the_halves_of_the_first_listener() -> None:
    assert load(port=1234)[LISTENERS] == ("PLAINTEXT://localhost:1234",)
    assert load(host="127.0.0.1")[LISTENERS] == ("PLAINTEXT://127.0.0.1:9092",)
    assert load(host="::1", port=5)[LISTENERS] == ("PLAINTEXT://[::1]:5",)


def test_the_advertised_address_belongs_to_the_first_listener() -> None:
    protocols = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT"}
    values = load(
        listeners=("INSIDE://:1", "OUTSIDE://:2"), advertised="example.org:9", overrides=protocols
    )
    assert values[ADVERTISED_LISTENERS] == ("INSIDE://example.org:9",)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"listeners": "INSIDE://:1"}, "listener INSIDE has no protocol"),
        ({"inter.broker.listener.name": "NODES"}, "NODES, which does not listen"),
        ({"listener.name.other.ssl.client.auth": "none"}, "not in listeners"),
        ({"listener.name.plaintext.num.partitions": "1"}, "unknown config key"),
        ({"listeners": "SSL://localhost:1"}, "listener SSL speaks TLS, and has no key"),
        (
            {
                "listeners": "SASL_PLAINTEXT://localhost:1",
                "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
            },
            "offers PLAIN without TLS",
        ),
        ({"ssl.client.auth": "perhaps"}, "String must be one of: none, requested, required"),
        ({"super.users": "admin"}, "'admin' is not of the form User:name"),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "neither DEFAULT nor"),
        ({"sasl.enabled.mechanisms": "GSSAPI"}, "'GSSAPI' is not one of"),
    ],
)
def test_listeners_that_do_not_fit_together_are_refused(
    overrides: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(overrides=overrides)


def test_a_secret_is_not_repeated_in_an_error() -> None:
    key = replace(BROKER_SCHEMA["ssl.key.password"], validator=lambda _: "is wrong")
    with pytest.raises(ApiError) as refused:
        key.parse("hush")
    assert "hush" not in str(refused.value)


def test_data_directories_become_log_dirs() -> None:
    log_dirs: Any = load(data=(Path("a"), Path("b")))[LOG_DIRS]
    assert log_dirs == ("a", "b")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("log.retention.sm: 1", "'log.retention.sm'; did you mean log.retention.ms?"),
        ("num.partitions: many", "many for configuration num.partitions: Not a number of type INT"),
        ("num.partitions: 0", "0 for configuration num.partitions: Value must be at least 1"),
        ("- a", "must hold `key: value` lines"),
        ("log:\n  retention.ms: 1", "write `log.retention.ms: ...` on one line"),
        ("a: 1\nb: [", "is not YAML: line 2: expected the node content"),
    ],
)
def test_a_wrong_file_is_refused_by_name(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load(config_file=written(tmp_path, content))
    assert message in str(refused.value)
    assert "broker.yaml" in str(refused.value)


def test_a_wrong_list_is_shown_as_it_was_written() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value nope,X://:1 for configuration listeners"):
        load(listeners=("nope", "X://:1"))


def test_an_empty_file_sets_nothing(tmp_path: Path) -> None:
    assert load_config(ServeSettings(config_file=written(tmp_path, "# nothing\n")), {}) == {}


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml: No such file"):
        load(config_file=tmp_path / "nowhere.yaml")


def test_an_unknown_variable_of_ours_is_refused_and_others_are_not_ours() -> None:
    with pytest.raises(ConfigError, match=r"OTTLA_NODE_IDD; did you mean OTTLA_NODE_ID\?"):
        load({"OTTLA_NODE_IDD": "1"})
    load({"OTTLA_BOOTSTRAP_SERVER": "localhost:1", "PATH": "/bin"})


def test_an_unknown_override_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"did you mean node.id\? \(in the flags\)"):
        load(overrides={"node.idd": "1"})


def test_no_two_keys_share_an_environment_variable() -> None:
    names = [environment_name(key.name) for key in BROKER_SCHEMA]
    assert len(set(names)) == len(names)


def test_every_default_is_valid_and_survives_its_text_form() -> None:
    for key in BROKER_SCHEMA:
        if key.default is not None:
            assert key.parse(key.format(key.default)) == key.default, key.name


def test_the_example_file_is_valid() -> None:
    load(config_file=Path("config/broker.yaml"))


def test_the_reference_in_the_documentation_is_up_to_date() -> None:
    assert Path("docs/config.md").read_text() == config_reference(), "run `make docs`"


def test_values_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"group\.share\.min\.session\.timeout\.ms"):
        load(overrides={"group.share.session.timeout.ms": "7000"})
