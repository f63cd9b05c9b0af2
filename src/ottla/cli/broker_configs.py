"""Configs of several resources at once."""

from collections.abc import Iterable, Mapping

from kio.schema.describe_configs.v4.response import DescribeConfigsResponse, DescribeConfigsResult

from ottla.cli.broker_call import BrokerCall, check
from ottla.client.wire.configs import TOPIC, Resource, alter_request, describe_request


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


def alter_configs(broker: BrokerCall, changes: Mapping[Resource, Mapping[str, str | None]]) -> None:
    if not changes:
        return
    for result in broker.call(alter_request(changes)).responses:
        check(result.error_code, result.resource_name, result.error_message)
