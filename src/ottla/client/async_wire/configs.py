"""Configs of a topic or a group."""

import enum
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.client.async_wire.cluster import Cluster
from ottla.client.wire.errors import validate_answer


class Resource(enum.IntEnum):
    TOPIC = 2
    GROUP = 32


_SET: Final = i8(0)


async def describe_configs(
    cluster: Cluster, resource: Resource, name: str, keys: Sequence[str]
) -> dict[str, Any]:
    """By key; omits those that the broker does not know."""
    wanted = DescribeConfigsResource(
        resource_type=i8(resource), resource_name=name, configuration_keys=tuple(keys)
    )
    request = DescribeConfigsRequest(resources=(wanted,))
    (result,) = (await (await cluster.any_broker()).call(request)).results
    validate_answer(result.error_code, f"the configuration of {resource.name.lower()} {name}")
    return {config.name: config for config in result.configs}


async def set_config(cluster: Cluster, resource: Resource, name: str, key: str, value: str) -> None:
    change = AlterConfigsResource(
        resource_type=i8(resource),
        resource_name=name,
        configs=(AlterableConfig(name=key, config_operation=_SET, value=value),),
    )
    request = IncrementalAlterConfigsRequest(resources=(change,), validate_only=False)
    (changed,) = (await (await cluster.any_broker()).call(request)).responses
    validate_answer(changed.error_code, f"the configuration of {resource.name.lower()} {name}")
