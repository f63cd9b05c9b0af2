"""Configs in the protocol's own words, of several resources at once."""

from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResponse, DescribeConfigsResult
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.cli.broker_call import BrokerCall, check

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
SET, DELETE, APPEND, SUBTRACT = map(i8, range(4))  # Of IncrementalAlterConfigs.

Resource = tuple[int, str]  # Type and name.


def describe_request(
    resource_type: int, names: Iterable[str], keys: tuple[str, ...] | None = None
) -> DescribeConfigsRequest:
    """For these keys, or all."""
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=i8(resource_type), resource_name=name, configuration_keys=keys
            )
            for name in names
        )
    )


def describe_configs(
    broker: BrokerCall,
    resource_type: int,
    names: Iterable[str],
    keys: tuple[str, ...] | None = None,
) -> tuple[DescribeConfigsResult, ...]:
    """A result for each resource."""
    request = describe_request(resource_type, names, keys)
    response: DescribeConfigsResponse = broker.call(request)
    return response.results


def topic_configs(broker: BrokerCall, key: str, topics: Iterable[str]) -> dict[str, str | None]:
    """The value of one key, by topic; without topics that have gone."""
    return {
        result.resource_name: config.value
        for result in describe_configs(broker, TOPIC, sorted(topics), (key,))
        for config in result.configs
        if config.name == key
    }


def change_request(
    changes: Mapping[Resource, Iterable[AlterableConfig]],
) -> IncrementalAlterConfigsRequest:
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=i8(resource_type), resource_name=name, configs=tuple(configs)
            )
            for (resource_type, name), configs in changes.items()
        ),
        validate_only=False,
    )


def alter_request(
    changes: Mapping[Resource, Mapping[str, str | None]],
) -> IncrementalAlterConfigsRequest:
    """None takes a value away."""
    return change_request(
        {
            resource: [
                AlterableConfig(
                    name=key, config_operation=DELETE if value is None else SET, value=value
                )
                for key, value in values.items()
            ]
            for resource, values in changes.items()
        }
    )


def alter_configs(broker: BrokerCall, changes: Mapping[Resource, Mapping[str, str | None]]) -> None:
    if not changes:
        return
    for result in broker.call(alter_request(changes)).responses:
        check(result.error_code, result.resource_name, result.error_message)
