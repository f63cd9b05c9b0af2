"""Levels of a broker's loggers, which last until it stops (KIP-412)."""

from typing import Any

import pytest
from tests.clients.versions import build_request
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
BROKER_LOGGER = 8
DYNAMIC_BROKER_LOGGER_SOURCE = 6
SET, DELETE, APPEND = 0, 1, 2
BROKER = "1"


def describe(wire: Wire, name: str = BROKER) -> Any:
    resource = {"resource_type": BROKER_LOGGER, "resource_name": name, "configuration_keys": None}
    values = {"resources": (resource,), "include_synonyms": True, "include_documentation": False}
    [result] = wire.call(build_request(DESCRIBE_CONFIGS, 4, values)).results
    return result


def levels(wire: Wire) -> dict[str, str]:
    return {config.name: config.value for config in describe(wire).configs}


def alter(wire: Wire, logger: str, operation: int, value: str | None, name: str = BROKER) -> int:
    change = {"name": logger, "config_operation": operation, "value": value}
    resource = {"resource_type": BROKER_LOGGER, "resource_name": name, "configs": (change,)}
    values = {"resources": (resource,), "validate_only": False}
    [result] = wire.call(build_request(INCREMENTAL_ALTER_CONFIGS, 1, values)).responses
    return int(result.error_code)


def test_every_logger_has_a_level(wire: Wire) -> None:
    result = describe(wire)
    assert result.error_code == ErrorCode.none
    found = {config.name: config for config in result.configs}
    assert len(found) > 10
    root = found["root"]
    assert root.value in {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"}
    assert (root.read_only, root.is_sensitive, root.synonyms) == (False, False, ())
    assert root.config_source == DYNAMIC_BROKER_LOGGER_SOURCE


def test_a_level_is_set_and_taken_back(wire: Wire) -> None:
    before = levels(wire)
    logger = next(name for name in sorted(before) if name.count(".") > 1)
    assert alter(wire, logger, SET, "ERROR") == ErrorCode.none
    assert levels(wire) == {**before, logger: "ERROR"}
    assert alter(wire, logger, DELETE, None) == ErrorCode.none
    assert levels(wire)[logger] == before["root"]


@pytest.mark.parametrize(
    ("logger", "operation", "value", "expected"),
    [
        ("root", SET, "debug", ErrorCode.invalid_config),
        ("root", SET, "LOUD", ErrorCode.invalid_config),
        ("root", APPEND, "DEBUG", ErrorCode.invalid_request),
        ("root", DELETE, None, ErrorCode.invalid_request),
        ("no.such.logger", SET, "DEBUG", ErrorCode.invalid_config),
        ("no.such.logger", DELETE, None, ErrorCode.invalid_config),
    ],
)
def test_what_is_refused(
    wire: Wire, logger: str, operation: int, value: str | None, expected: ErrorCode
) -> None:
    before = levels(wire)
    assert alter(wire, logger, operation, value) == expected
    assert levels(wire) == before


@pytest.mark.parametrize("name", ["", "x", "7777"])
def test_a_broker_speaks_only_for_itself(wire: Wire, name: str) -> None:
    assert describe(wire, name).error_code == ErrorCode.invalid_request
    assert alter(wire, "root", SET, "INFO", name) == ErrorCode.invalid_request
