"""The whole DescribeConfigs response, compared with Apache Kafka's, and the accepted values.

What differs must be listed in docs/compatibility.md, and what is listed there must differ.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.clients.config_facts import GROUP_FACTS, TOPIC_FACTS, Fact
from tests.clients.conftest import await_value
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.node.kafka_keys import read_table
from ottla.protocol.errors import ErrorCode

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND = 0, 1, 2
DYNAMIC_BROKER_SOURCE, DEFAULT_SOURCE = 2, 5

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
KEY = r"`([a-z0-9.]+)`"


def listed(beginning: str) -> set[str]:
    """The keys that the document lists in the part that begins so."""
    part = DOCUMENT.read_text().split(f"\n{beginning}: ")[1].split("\n\n")[0]
    return set(re.findall(KEY, part))


DEFAULTS = set(re.findall(rf"^\| {KEY} \|", DOCUMENT.read_text(), re.MULTILINE))
DYNAMIC_ONLY_HERE = listed("Dynamic only in Ottla")
DYNAMIC_ONLY_IN_KAFKA = listed("Dynamic only in Kafka")
TYPES = listed("Of another type")
SYNONYMS = listed("With another synonym")


class Configs:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def describe(self, resource_type: int, name: str) -> Any:
        resource = {"resource_type": resource_type, "resource_name": name}
        values: dict[str, object] = {"resources": ({**resource, "configuration_keys": None},)}
        values |= {"include_synonyms": True, "include_documentation": False}
        [result] = self._wire.call(build_request(DESCRIBE_CONFIGS, 4, values)).results
        return result

    def all(self, resource_type: int, name: str) -> dict[str, Any]:
        result = self.describe(resource_type, name)
        assert (result.error_code, result.error_message) == (ErrorCode.none, "")
        return {config.name: config for config in result.configs}

    def alter(
        self, resource_type: int, name: str, key: str, operation: int, value: str | None
    ) -> ErrorCode:
        change = {"name": key, "config_operation": operation, "value": value}
        resource = {"resource_type": resource_type, "resource_name": name, "configs": (change,)}
        values: dict[str, object] = {"resources": (resource,), "validate_only": False}
        [result] = self._wire.call(build_request(INCREMENTAL_ALTER_CONFIGS, 1, values)).responses
        return ErrorCode(result.error_code)

    def await_source(self, broker_id: str, key: str, source: int | None) -> Any:
        """Kafka answers an alteration before its broker has applied it."""
        while True:
            config = self.all(BROKER, broker_id).get(key)
            if (None if config is None else config.config_source) == source:
                return config


@pytest.fixture
def configs(wire: Wire) -> Configs:
    return Configs(wire)


@pytest.fixture
def broker_id(wire: Wire) -> str:
    values = {"include_cluster_authorized_operations": False, "endpoint_type": 1}
    values |= {"include_fenced_brokers": False}
    [broker] = wire.call(build_request(60, 2, values)).brokers
    return str(broker.broker_id)


def shown_default(config: Any) -> str | None:
    values = [synonym.value for synonym in config.synonyms if synonym.source == DEFAULT_SOURCE]
    return values[0] if values else None


def test_every_broker_key_is_that_of_kafka(configs: Configs, broker_id: str) -> None:
    found = configs.all(BROKER, broker_id)
    is_own = "ottla.version" in found
    table = {name: row for name, row in read_table().items() if not row.internal or name in found}
    assert len(table) >= 340
    internal = [found[name] for name, row in table.items() if row.internal]
    assert all(config.config_source != DEFAULT_SOURCE for config in internal)
    assert table.keys() <= found.keys()
    types = {name for name, row in table.items() if found[name].config_type != row.type}
    assert types == (TYPES if is_own else set())
    defaults = {
        name
        for name, row in table.items()
        if not found[name].is_sensitive and shown_default(found[name]) != row.default
    }
    assert defaults == (DEFAULTS if is_own else set())
    dynamic = {name for name, row in table.items() if row.dynamic != (not found[name].read_only)}
    assert dynamic == (DYNAMIC_ONLY_HERE | DYNAMIC_ONLY_IN_KAFKA if is_own else set())
    assert not any(table[name].dynamic for name in dynamic & DYNAMIC_ONLY_HERE)


@pytest.mark.parametrize(
    ("resource_type", "facts"), [(TOPIC, TOPIC_FACTS), (GROUP, GROUP_FACTS)], ids=["topic", "group"]
)
def test_every_key_of_topics_and_groups_is_that_of_kafka(
    configs: Configs, topic: str, broker_id: str, resource_type: int, facts: dict[str, Fact]
) -> None:
    is_own = "ottla.version" in configs.all(BROKER, broker_id)
    found = configs.all(resource_type, topic)
    strays = set()
    for name, fact in facts.items():
        if is_own and name.startswith("streams.") and name not in found:
            continue  # Streams groups are not served.
        config = found[name]
        assert (config.config_type, config.read_only) == (fact.type, False), name
        assert config.value == fact.default, name
        synonyms = [synonym.name for synonym in config.synonyms]
        if synonyms[-1:] != ([] if fact.synonym is None else [fact.synonym]):
            strays.add(name)
    assert strays == (SYNONYMS & facts.keys() if is_own else set())


def test_a_key_that_nobody_knows_is_kept_for_a_broker_and_its_value_hidden(
    configs: Configs, broker_id: str
) -> None:
    key = "some.plugin.key"
    assert configs.alter(BROKER, broker_id, key, SET, "secret") == ErrorCode.none
    config = configs.await_source(broker_id, key, DYNAMIC_BROKER_SOURCE)
    assert (config.value, config.is_sensitive, config.read_only) == (None, True, True)
    assert config.config_type == 0
    assert configs.alter(BROKER, broker_id, key, DELETE, None) == ErrorCode.none
    configs.await_source(broker_id, key, None)


def test_a_rate_without_a_limit_is_shown_as_java_writes_it(
    configs: Configs, broker_id: str
) -> None:
    key = "log.cleaner.io.max.bytes.per.second"
    assert configs.alter(BROKER, broker_id, key, SET, "Infinity") == ErrorCode.none
    configs.await_source(broker_id, key, DYNAMIC_BROKER_SOURCE)
    await_value(lambda: configs.all(BROKER, broker_id)[key].value, "Infinity")
    assert configs.alter(BROKER, broker_id, key, DELETE, None) == ErrorCode.none
    configs.await_source(broker_id, key, DEFAULT_SOURCE)


@pytest.mark.parametrize(
    ("name", "key", "operation", "value", "expected"),
    [
        ("1", "some.plugin.key", APPEND, "x", ErrorCode.invalid_config),
        ("1", "broker.rack", SET, "x", ErrorCode.invalid_request),
        ("1", "broker.rack", DELETE, None, ErrorCode.none),
        ("1", "num.io.threads", SET, "many", ErrorCode.invalid_request),
        ("1", "num.io.threads", SET, "1_0", ErrorCode.invalid_request),
        ("1", "log.cleaner.io.max.bytes.per.second", SET, "inf", ErrorCode.invalid_request),
        ("", "cordoned.log.dirs", SET, "*", ErrorCode.invalid_request),
        ("7777", "num.io.threads", SET, "9", ErrorCode.invalid_request),
    ],
)
def test_what_a_broker_refuses(
    configs: Configs,
    broker_id: str,
    name: str,
    key: str,
    operation: int,
    value: str | None,
    expected: ErrorCode,
) -> None:
    name = broker_id if name == "1" else name
    assert configs.alter(BROKER, name, key, operation, value) == expected


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("cleanup.policy", "", ErrorCode.none),
        ("compression.zstd.level", "22", ErrorCode.none),
        ("compression.zstd.level", "23", ErrorCode.invalid_config),
        ("compression.gzip.level", "0", ErrorCode.invalid_config),
        ("local.retention.ms", "5", ErrorCode.none),
        ("segment.bytes", "1048576", ErrorCode.none),
        ("segment.bytes", "1048575", ErrorCode.invalid_config),
        ("internal.segment.bytes", "100", ErrorCode.none),
        ("internal.segment.bytes", "many", ErrorCode.invalid_config),
        ("remote.storage.enable", "true", ErrorCode.invalid_config),
        ("some.plugin.key", "x", ErrorCode.invalid_config),
    ],
)
def test_what_a_topic_takes(
    configs: Configs, topic: str, key: str, value: str, expected: ErrorCode
) -> None:
    assert configs.alter(TOPIC, topic, key, SET, value) == expected


@pytest.mark.parametrize("resource_type", [TOPIC, GROUP, CLIENT_METRICS])
def test_a_key_that_nobody_knows_can_be_deleted_but_not_appended_to(
    configs: Configs, topic: str, resource_type: int
) -> None:
    assert configs.alter(resource_type, topic, "some.plugin.key", DELETE, None) == ErrorCode.none
    refused = configs.alter(resource_type, topic, "some.plugin.key", APPEND, "x")
    assert refused == ErrorCode.invalid_config


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("interval.ms", "100", ErrorCode.none),
        ("interval.ms", "99", ErrorCode.invalid_request),
        ("interval.ms", "3600001", ErrorCode.invalid_request),
        ("interval.ms", "often", ErrorCode.invalid_config),
        ("some.plugin.key", "x", ErrorCode.invalid_request),
        ("match", "client_id=(", ErrorCode.invalid_config),
        ("match", "nobody=x", ErrorCode.invalid_config),
    ],
)
def test_what_a_subscription_to_metrics_takes(
    configs: Configs, topic: str, key: str, value: str, expected: ErrorCode
) -> None:
    assert configs.alter(CLIENT_METRICS, topic, key, SET, value) == expected


def test_an_internal_key_is_shown_where_it_is_set(configs: Configs, topic: str) -> None:
    key = "internal.segment.bytes"
    assert key not in configs.all(TOPIC, topic)
    assert configs.alter(TOPIC, topic, key, SET, "4096") == ErrorCode.none
    while key not in (found := configs.all(TOPIC, topic)):
        pass
    assert (found[key].value, found[key].config_type) == ("4096", 3)
    assert found["segment.bytes"].value == "1073741824"


def test_a_group_needs_a_name(configs: Configs) -> None:
    assert configs.describe(GROUP, "").error_code == ErrorCode.invalid_request


def test_the_retention_of_all_topics_can_be_altered(
    configs: Configs, topic: str, broker_id: str, new_name: Callable[[], str]
) -> None:
    assert configs.alter(BROKER, broker_id, "log.retention.ms", SET, "123456") == ErrorCode.none
    configs.await_source(broker_id, "log.retention.ms", DYNAMIC_BROKER_SOURCE)
    retention = configs.all(TOPIC, topic)["retention.ms"]
    assert (retention.value, retention.config_source) == ("123456", DYNAMIC_BROKER_SOURCE)
    assert configs.alter(BROKER, broker_id, "log.retention.ms", DELETE, None) == ErrorCode.none
    configs.await_source(broker_id, "log.retention.ms", DEFAULT_SOURCE)
