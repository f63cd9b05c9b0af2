"""Configs of a topic, a broker or a group, one call each."""

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.client.async_wire.cluster import Cluster
from ottla.client.async_wire.connection import Connection
from ottla.client.wire.cluster import expect_one
from ottla.client.wire.errors import validate_answer

_SET: Final = i8(0)
_DELETE: Final = i8(1)


class ResourceType(enum.IntEnum):
    TOPIC = 2
    BROKER = 4
    GROUP = 32


async def describe_configs(
    cluster: Cluster, kind: ResourceType, name: str, keys: Sequence[str] | None = None
) -> dict[str, Any]:
    """By key, all or these; omits those that the broker does not know."""
    resource = DescribeConfigsResource(
        resource_type=i8(kind),
        resource_name=name,
        configuration_keys=None if keys is None else tuple(keys),
    )
    request = DescribeConfigsRequest(resources=(resource,))
    found = expect_one((await (await _target(cluster, kind, name)).call(request)).results)
    validate_answer(
        found.error_code, f"the configuration of {kind.name.lower()} {name}", found.error_message
    )
    return {config.name: config for config in found.configs}


async def alter_configs(
    cluster: Cluster, kind: ResourceType, name: str, values: Mapping[str, str | None]
) -> None:
    """None removes a value, so that the default applies."""
    resource = AlterConfigsResource(
        resource_type=i8(kind),
        resource_name=name,
        configs=tuple(
            AlterableConfig(
                name=key, config_operation=_DELETE if value is None else _SET, value=value
            )
            for key, value in values.items()
        ),
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    answer = expect_one((await (await _target(cluster, kind, name)).call(request)).responses)
    validate_answer(
        answer.error_code, f"the configuration of {kind.name.lower()} {name}", answer.error_message
    )


async def _target(cluster: Cluster, kind: ResourceType, name: str) -> Connection:
    """A broker knows only its own configuration."""
    if kind is ResourceType.BROKER and name:
        return await cluster.node(int(name))
    return await cluster.any_broker()
