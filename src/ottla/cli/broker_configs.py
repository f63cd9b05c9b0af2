"""Changes of configs in the protocol's own words, several resources at once."""

from collections.abc import Mapping
from typing import Final

from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.cli.broker_call import BrokerCall, check

VERSION: Final = 1
TOPIC: Final = 2
BROKER: Final = 4
_SET: Final = i8(0)
_DELETE: Final = i8(1)

Resource = tuple[int, str]  # Type and name.


def alter_configs(broker: BrokerCall, changes: Mapping[Resource, Mapping[str, str | None]]) -> None:
    """None takes a value away."""
    if not changes:
        return
    request = IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=i8(resource_type),
                resource_name=name,
                configs=tuple(
                    AlterableConfig(
                        name=key, config_operation=_DELETE if value is None else _SET, value=value
                    )
                    for key, value in values.items()
                ),
            )
            for (resource_type, name), values in changes.items()
        ),
        validate_only=False,
    )
    for result in broker.call(request, VERSION).responses:
        check(result.error_code, result.resource_name, result.error_message)
