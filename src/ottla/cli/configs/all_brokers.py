"""The configuration for all brokers, which librdkafka has no function for."""

from collections.abc import Sequence
from typing import Final

from confluent_kafka.admin import ConfigEntry, ConfigSource
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import Connection

WHAT: Final = "all brokers"
_BROKER: Final = i8(4)
_ALL: Final = ""
_ALTER_VERSION: Final = 1
_DESCRIBE_VERSION: Final = 4


def alter_all_brokers(connection: Connection, entries: Sequence[ConfigEntry]) -> None:
    configs = tuple(map(_change, entries))
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name=_ALL, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    with bootstrap_broker(connection) as broker:
        (answer,) = broker.call(request, _ALTER_VERSION).responses
    check(answer.error_code, WHAT, answer.error_message)


def _change(entry: ConfigEntry) -> AlterableConfig:
    operation = entry.incremental_operation
    assert operation is not None
    return AlterableConfig(name=entry.name, config_operation=i8(operation.value), value=entry.value)


def describe_all_brokers(connection: Connection) -> dict[str, ConfigEntry]:
    """What was set for all of them; nothing else holds for every broker."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=_ALL, configuration_keys=None
    )
    with bootstrap_broker(connection) as broker:
        request = DescribeConfigsRequest(resources=(resource,))
        (result,) = broker.call(request, _DESCRIBE_VERSION).results
    check(result.error_code, WHAT, result.error_message)
    return {
        one.name: ConfigEntry(
            one.name,
            one.value,
            source=ConfigSource(one.config_source),
            is_read_only=one.read_only,
            is_sensitive=one.is_sensitive,
        )
        for one in result.configs
    }
