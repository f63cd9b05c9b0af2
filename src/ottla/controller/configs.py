"""Configs of topics, groups, brokers and client metrics.

They are changed incrementally (KIP-339), or replaced as a whole.

A broker's configs are stored under its id; those of all brokers under the empty name. Brokers
accept only dynamic keys, since the others are read once at startup.
"""

import enum
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kio.schema.alter_configs.v2 import request as replacement
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse as ReplacementResult
from kio.schema.alter_configs.v2.response import AlterConfigsResponse
from kio.schema.incremental_alter_configs.v1 import request as incremental
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse as IncrementalResult,
)
from kio.schema.incremental_alter_configs.v1.response import IncrementalAlterConfigsResponse
from kio.static.primitive import i8

from ottla.controller.client_metrics import CLIENT_METRICS_SCHEMA, INTERVAL_MS
from ottla.controller.config import IMPORT_OPEN, MIN_INSYNC_REPLICAS, RECORD_IMPORT
from ottla.controller.effective_configs import ConfigRules, EffectiveConfigs
from ottla.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    MetadataImage,
)
from ottla.controller.leadership import Leadership
from ottla.controller.partition_index import PartitionIndex
from ottla.controller.records import ConfigRecord, MetadataRecord
from ottla.machine.result import Result
from ottla.protocol.config import (
    LISTENER_PREFIX,
    ConfigKey,
    ConfigSchema,
    ConfigType,
    undeclared_key,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

R = TypeVar("R")

_AskedResource = incremental.AlterConfigsResource | replacement.AlterConfigsResource


class AlterOperation(enum.IntEnum):
    """Values as in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class _Resource(NamedTuple):
    resource_type: i8
    name: str
    schema: ConfigSchema
    values: Mapping[str, str]  # Its own values, without inherited ones.


class ConfigControl:
    def __init__(
        self,
        image: MetadataImage,
        rules: ConfigRules,
        index: PartitionIndex,
        leadership: Leadership,
    ) -> None:
        self._image = image
        self._rules = rules
        self._index = index
        self._leadership = leadership

    def incremental_alter_configs(
        self, request: incremental.IncrementalAlterConfigsRequest
    ) -> Result[IncrementalAlterConfigsResponse]:
        records, results = self._alter(request.resources, self._increments, IncrementalResult)
        response = IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=results)
        effects = () if request.validate_only else self.with_effects(records)
        return Result(response, effects, cause="a config was changed")

    def alter_configs(
        self, request: replacement.AlterConfigsRequest
    ) -> Result[AlterConfigsResponse]:
        records, results = self._alter(request.resources, _replacements, ReplacementResult)
        response = AlterConfigsResponse(throttle_time=NO_THROTTLE, responses=results)
        effects = () if request.validate_only else self.with_effects(records)
        return Result(response, effects, cause="a config was changed")

    def _alter(
        self,
        resources: Sequence[_AskedResource],
        changes_of: Callable[[_Resource, Any], list[ConfigRecord]],
        result_of: Callable[..., R],
    ) -> tuple[list[ConfigRecord], tuple[R, ...]]:
        """The records for the resources that can be altered, and a result for each resource."""
        records: list[ConfigRecord] = []
        results = []
        repeated = _repeated(resources)
        for asked in resources:
            error = None
            try:
                resource = self._resource(asked.resource_type, asked.resource_name, repeated)
                records.extend(self._validated(resource, changes_of(resource, asked.configs)))
            except ApiError as raised:
                error = raised
            results.append(
                result_of(
                    error_code=ErrorCode.none if error is None else error.code,
                    error_message=None if error is None else error.message,
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                )
            )
        return records, tuple(results)

    def with_effects(self, records: list[ConfigRecord]) -> tuple[MetadataRecord, ...]:
        """Add the resulting changes of leaders and in-sync sets."""
        return (*records, *self._leadership.changes_by_configs(self._index, records))

    def _resource(self, resource_type: i8, name: str, repeated: set[tuple[int, str]]) -> _Resource:
        if (resource_type, name) in repeated:
            raise ApiError(ErrorCode.invalid_request, f"{name!r} is named more than once")
        values = self._image.configs.get((resource_type, name), {})
        if resource_type == TOPIC_RESOURCE:
            if name not in self._image.topics:
                raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {name!r}")
            return _Resource(resource_type, name, self._rules.topic_schema, values)
        if resource_type == BROKER_RESOURCE:
            self._validate_broker(name)
            return _Resource(resource_type, name, self._rules.broker_schema, values)
        if resource_type == GROUP_RESOURCE:
            if not name:
                raise ApiError(ErrorCode.invalid_request, "the name of the group is empty")
            return _Resource(resource_type, name, self._rules.group_schema, values)
        if resource_type == CLIENT_METRICS_RESOURCE:
            if not name:
                raise ApiError(ErrorCode.invalid_request, "the subscription's name is empty")
            return _Resource(resource_type, name, CLIENT_METRICS_SCHEMA, values)
        raise ApiError(
            ErrorCode.invalid_request, f"configs of resource type {resource_type} cannot be set"
        )

    def _validated(self, resource: _Resource, changes: list[ConfigRecord]) -> list[ConfigRecord]:
        """The values of a group must be consistent, also with those of the broker."""
        if resource.resource_type == GROUP_RESOURCE:
            changed = {change.name: change.value for change in changes}
            values = {**resource.values, **changed}
            own = {name: value for name, value in values.items() if value is not None}
            configs = EffectiveConfigs(self._image, self._rules, None)
            self._rules.validate_group(configs.group_values_with(own), configs.broker_values())
        if (RECORD_IMPORT.name, IMPORT_OPEN) in ((each.name, each.value) for each in changes):
            raise ApiError(
                ErrorCode.invalid_config,
                f"{RECORD_IMPORT.name} can be {IMPORT_OPEN} only from the creation of a topic on:"
                " others may have written to this one",
            )
        return changes

    def _validate_broker(self, name: str) -> None:
        if name and not (name.isdecimal() and int(name) in self._image.brokers):
            raise ApiError(
                ErrorCode.invalid_request,
                f"{name!r} is not the id of a registered broker, nor empty for all of them",
            )

    def _increments(
        self, resource: _Resource, changes: Sequence[incremental.AlterableConfig]
    ) -> list[ConfigRecord]:
        _validate_once(change.name for change in changes)
        records: list[ConfigRecord] = []
        for change in changes:
            key = _alterable(resource, change)
            value = self._incremented(resource, key, change)
            records.extend(_change(resource, key.name, value))
        return records

    def _incremented(
        self, resource: _Resource, key: ConfigKey[Any], change: incremental.AlterableConfig
    ) -> str | None:
        """The new value, or None for the default."""
        try:
            operation = AlterOperation(change.config_operation)
        except ValueError:
            raise ApiError(
                ErrorCode.invalid_request, f"unknown operation {change.config_operation}"
            ) from None
        if operation is AlterOperation.DELETE:
            return None
        if change.value is None:
            raise ApiError(ErrorCode.invalid_request, f"Null value not supported for : {key.name}")
        if operation is AlterOperation.SET:
            return _checked(resource, key, change.value)
        return self._list_value(resource, key, operation, change.value)

    def _list_value(
        self, resource: _Resource, key: ConfigKey[Any], operation: AlterOperation, text: str
    ) -> str:
        if key.type is not ConfigType.LIST:
            raise ApiError(
                ErrorCode.invalid_config,
                f"Can't {operation.name} to key {key.name} because its type is not LIST.",
            )
        own = resource.values.get(key.name)
        present = _items(self._inherited(resource, key) if own is None else own)
        named = _items(text)
        if operation is AlterOperation.APPEND:
            items = present + [item for item in named if item not in present]
        else:
            items = [item for item in present if item not in named]
        return key.format(key.parse(items))

    def _inherited(self, resource: _Resource, key: ConfigKey[Any]) -> str:
        """The value that applies while the resource does not set the key."""
        configs = EffectiveConfigs(self._image, self._rules, None)
        if resource.resource_type == TOPIC_RESOURCE:
            entries = configs.describe_topic({})
        elif resource.resource_type == GROUP_RESOURCE:
            entries = configs.describe_group({})
        elif resource.resource_type == CLIENT_METRICS_RESOURCE:
            entries = configs.describe_client_metrics({})
        else:
            entries = configs.describe_broker()
        return next(entry.value or "" for entry in entries if entry.key.name == key.name)


def _replacements(
    resource: _Resource, configs: Sequence[replacement.AlterableConfig]
) -> list[ConfigRecord]:
    _validate_once(config.name for config in configs)
    wanted: dict[str, str] = {}
    for config in configs:
        key = _settable(resource, config.name)
        if config.value is None:
            raise ApiError(
                ErrorCode.invalid_request, f"Null value not supported for : {config.name}"
            )
        wanted[config.name] = _checked(resource, key, config.value)
    records: list[ConfigRecord] = []
    for name in (*wanted, *(name for name in resource.values if name not in wanted)):
        records.extend(_change(resource, name, wanted.get(name)))
    return records


def _alterable(resource: _Resource, change: incremental.AlterableConfig) -> ConfigKey[Any]:
    """A key that nobody declares can be deleted; to append or subtract, it must be declared."""
    operation: int = change.config_operation
    is_broker = resource.resource_type == BROKER_RESOURCE
    if is_broker and operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        resource.schema[change.name]
    is_known = resource.schema.finds(change.name)
    if operation == AlterOperation.DELETE and (is_broker or not is_known):
        return undeclared_key(change.name)
    if operation == AlterOperation.SET and not is_known and _is_of_client_metrics(resource):
        raise ApiError(ErrorCode.invalid_request, f"unknown config key {change.name!r}")
    return _settable(resource, change.name)


def _settable(resource: _Resource, name: str) -> ConfigKey[Any]:
    if resource.resource_type != BROKER_RESOURCE:
        return resource.schema[name]
    if not resource.schema.finds(name):
        return undeclared_key(name)
    key = resource.schema[name]
    if not key.dynamic:
        raise ApiError(
            ErrorCode.invalid_request, f"Cannot update these configs dynamically: [{name}]"
        )
    if key.listener_only:
        raise ApiError(
            ErrorCode.invalid_request,
            "These security configs can be dynamically updated only per-listener using the listener"
            f" prefix: [{name}], as in {LISTENER_PREFIX}<listener>.{name}",
        )
    if key.broker_only and not resource.name:
        raise ApiError(
            ErrorCode.invalid_request,
            "Cannot update these configs at default cluster level, broker id must be specified:"
            f" [{name}]",
        )
    if resource.name and name == MIN_INSYNC_REPLICAS.name:
        # Leaders would differ in their minimum: the controller could not tell who has everything.
        raise ApiError(
            ErrorCode.invalid_config, f"{name} is set for a topic or for all brokers, not for one"
        )
    return key


def _checked(resource: _Resource, key: ConfigKey[Any], value: str) -> str:
    """Kafka reports a bad broker value as a bad request, because there the broker finds it, and an
    interval of client metrics that is out of range."""
    try:
        return key.format(key.parse(value))
    except ApiError as error:
        is_interval = _is_of_client_metrics(resource) and key is INTERVAL_MS
        if resource.resource_type == BROKER_RESOURCE or (is_interval and value.isdecimal()):
            raise ApiError(ErrorCode.invalid_request, error.message) from None
        raise


def _is_of_client_metrics(resource: _Resource) -> bool:
    return resource.resource_type == CLIENT_METRICS_RESOURCE


def _change(resource: _Resource, name: str, value: str | None) -> Iterable[ConfigRecord]:
    """A record, unless the value is unchanged."""
    if resource.values.get(name) != value:
        if value is None and _is_minimum_of_cluster(resource, name):
            raise ApiError(
                ErrorCode.invalid_config,
                f"{name} of all brokers can be set to another value, but not removed: "
                "leaders would go by their own files then",
            )
        yield ConfigRecord(
            resource_type=resource.resource_type,
            resource_name=resource.name,
            name=name,
            value=value,
        )


def _is_minimum_of_cluster(resource: _Resource, name: str) -> bool:
    is_of_all = resource.resource_type == BROKER_RESOURCE and not resource.name
    return is_of_all and name == MIN_INSYNC_REPLICAS.name


def _validate_once(names: Iterable[str]) -> None:
    if any(count > 1 for count in Counter(names).values()):
        raise ApiError(ErrorCode.invalid_request, "Error due to duplicate config keys")


def _repeated(
    resources: Iterable[_AskedResource],
) -> set[tuple[int, str]]:
    named = Counter((resource.resource_type, resource.resource_name) for resource in resources)
    return {resource for resource, count in named.items() if count > 1}


def _items(text: str) -> list[str]:
    return [item for part in text.split(",") if (item := part.strip())]
