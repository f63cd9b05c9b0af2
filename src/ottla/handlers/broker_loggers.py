"""Configs of the resource BROKER_LOGGER: the log levels of this process (KIP-412).

They apply until the process ends. `root` is the logger `ottla`, the parent of all others. The audit
log is excluded: anyone who may alter configs could silence it.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from ottla.controller.configs import AlterOperation
from ottla.protocol.errors import ApiError, ErrorCode

BROKER_LOGGER_RESOURCE: Final = i8(8)
_SOURCE: Final = i8(6)  # DYNAMIC_BROKER_LOGGER_CONFIG of DescribeConfigs.
_ROOT: Final = "root"
_ABOVE_ALL: Final = "ottla"
_AUDIT: Final = "ottla.audit"
_LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}


def describe_loggers(
    node_id: int, name: str, keys: Sequence[str] | None, *, documented: bool
) -> tuple[DescribeConfigsResourceResult, ...]:
    _validate_own(node_id, name)
    return tuple(
        DescribeConfigsResourceResult(
            name=logger_name,
            value=_level_name(logger.getEffectiveLevel()),
            read_only=False,
            config_source=_SOURCE,
            is_sensitive=False,
            synonyms=(),
            documentation="" if documented else None,
        )
        for logger_name, logger in sorted(_loggers().items())
        if not keys or logger_name in keys
    )


def alter_loggers(node_id: int, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    """All or nothing; raises ApiError."""
    _validate_own(node_id, resource.resource_name)
    changes = _changes(resource.configs)
    if not validate_only:
        for logger, level in changes:
            logger.setLevel(level)


def _changes(configs: Iterable[AlterableConfig]) -> list[tuple[logging.Logger, int]]:
    loggers = _loggers()
    changes = []
    for config in configs:
        operation: int = config.config_operation
        if operation not in (AlterOperation.SET, AlterOperation.DELETE):
            raise ApiError(ErrorCode.invalid_request, "the level of a logger is set or deleted")
        logger = loggers.get(config.name)
        if logger is None:
            raise ApiError(ErrorCode.invalid_config, f"there is no logger {config.name!r}")
        if operation == AlterOperation.DELETE and config.name == _ROOT:
            raise ApiError(ErrorCode.invalid_request, "the level of root cannot be deleted")
        if operation == AlterOperation.DELETE:
            changes.append((logger, logging.NOTSET))
        elif config.value in _LEVELS:
            changes.append((logger, _LEVELS[config.value]))
        else:
            raise ApiError(
                ErrorCode.invalid_config,
                f"{config.value!r} is no level of a logger; there are {', '.join(_LEVELS)}",
            )
    return changes


def _loggers() -> dict[str, logging.Logger]:
    loggers = {_ROOT: logging.getLogger(_ABOVE_ALL)}
    for name, logger in list(logging.root.manager.loggerDict.items()):
        is_ours = name.startswith(f"{_ABOVE_ALL}.") and not name.startswith(_AUDIT)
        if is_ours and isinstance(logger, logging.Logger):
            loggers[name] = logger
    return loggers


def _level_name(level: int) -> str:
    return next((name for name, number in _LEVELS.items() if level <= number), "FATAL")


def _validate_own(node_id: int, name: str) -> None:
    if name != str(node_id):
        raise ApiError(
            ErrorCode.invalid_request,
            f"this is broker {node_id}; ask broker {name!r} for its own loggers",
        )
