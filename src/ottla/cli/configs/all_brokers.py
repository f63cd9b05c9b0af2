"""The configuration for all brokers, and of one that may be down.

librdkafka has no function for the first, and asks the broker itself for the second.
"""

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
from ottla.cli.cluster_reader import ClusterReader
from ottla.cli.connection import Connection
from ottla.cli.errors import CommandError

WHAT: Final = "all brokers"
_BROKER: Final = i8(4)
_ALL: Final = ""
_ALTER_VERSION: Final = 1
_DESCRIBE_VERSION: Final = 4


def alter_brokers(
    connection: Connection, node_id: int | None, entries: Sequence[ConfigEntry]
) -> None:
    """Without a node, for all of them."""
    name = _ALL if node_id is None else str(node_id)
    configs = tuple(map(_change, entries))
    resource = AlterConfigsResource(resource_type=_BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    with bootstrap_broker(connection) as broker:
        if node_id is not None:
            ClusterReader(broker).node(node_id)
        (answer,) = broker.call(request, _ALTER_VERSION).responses
    check(answer.error_code, WHAT if node_id is None else f"node {name}", answer.error_message)


def validate_running(connection: Connection, node_id: int) -> None:
    """Only a broker itself knows what its file and its environment say."""
    with bootstrap_broker(connection) as broker:
        node = ClusterReader(broker).node(node_id)
    if node.fenced:
        raise CommandError(
            f"node {node_id} is not running, and only it knows its configuration; start it, or see "
            "what is set for all nodes with --all-brokers"
        )


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
