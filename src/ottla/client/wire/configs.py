"""Requests that describe and alter configs."""

from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

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
