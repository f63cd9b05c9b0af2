"""The configuration for all brokers, of one that may be down, and of subscriptions to metrics.

librdkafka has no function for the first and the last, and asks the broker itself for the second.
"""

from collections.abc import Sequence
from typing import Any, Final

from confluent_kafka.admin import ConfigEntry, ConfigSource
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.static.primitive import i8

from ottla.cli.broker_call import BrokerCall, bootstrap_broker, check
from ottla.cli.broker_configs import ALTER_VERSION, BROKER, describe_configs
from ottla.cli.cluster_reader import ClusterReader
from ottla.cli.connection import Connection
from ottla.cli.errors import CommandError

WHAT: Final = "all brokers"
_CLIENT_METRICS: Final = 16
CLIENT_METRICS_SOURCE: Final = 7  # Which librdkafka does not know.
_ALL: Final = ""


def alter_brokers(
    connection: Connection, node_id: int | None, entries: Sequence[ConfigEntry]
) -> None:
    """Without a node, for all of them."""
    name = _ALL if node_id is None else str(node_id)
    with bootstrap_broker(connection) as broker:
        if node_id is not None:
            ClusterReader(broker).node(node_id)
        _alter(broker, BROKER, name, entries, WHAT if node_id is None else f"node {name}")


def alter_client_metrics(connection: Connection, name: str, entries: Sequence[ConfigEntry]) -> None:
    with bootstrap_broker(connection) as broker:
        _alter(broker, _CLIENT_METRICS, name, entries, f"client metrics {name}")


def _alter(
    broker: BrokerCall, resource_type: int, name: str, entries: Sequence[ConfigEntry], what: str
) -> None:
    configs = tuple(map(_change, entries))
    resource = AlterConfigsResource(
        resource_type=i8(resource_type), resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = broker.call(request, ALTER_VERSION).responses
    check(answer.error_code, what, answer.error_message)


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
    return _describe(connection, BROKER, _ALL, WHAT)


def describe_client_metrics(connection: Connection, name: str) -> dict[str, ConfigEntry]:
    return _describe(connection, _CLIENT_METRICS, name, f"client metrics {name}")


def _describe(
    connection: Connection, resource_type: int, name: str, what: str
) -> dict[str, ConfigEntry]:
    with bootstrap_broker(connection) as broker:
        (result,) = describe_configs(broker, resource_type, [name])
    check(result.error_code, what, result.error_message)
    return {
        config.name: ConfigEntry(
            config.name,
            config.value,
            source=_source(config.config_source),
            is_read_only=config.read_only,
            is_default=config.config_source == ConfigSource.DEFAULT_CONFIG.value,
            is_sensitive=config.is_sensitive,
        )
        for config in result.configs
    }


def _source(number: int) -> Any:
    return number if number == CLIENT_METRICS_SOURCE else ConfigSource(number)
