"""DescribeConfigs (32): v1-v4.

Every key of a topic, a group, a client metrics subscription or this broker, with its value and
source, and on request its synonyms and documentation. The broker with the empty name stands for all
brokers: it has only what was set for all of them.

v1  synonyms and sources (KIP-226)
v3  types and documentation (KIP-569)
v4  flexible
"""

from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from kio.static.primitive import i8

from ottla.controller.effective_configs import ConfigEntry, ConfigSource
from ottla.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.handlers.authorization import config_refusal
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.broker_loggers import BROKER_LOGGER_RESOURCE, describe_loggers
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topic_names import validate_topic_name
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    results = []
    for resource in request.resources:
        try:
            refusal = config_refusal(context, Operation.DESCRIBE_CONFIGS, resource)
            if refusal is not None:
                raise refusal
            configs = _configs(broker, resource, request)
        except ApiError as error:
            results.append(_failed(resource, error))
        else:
            results.append(
                DescribeConfigsResult(
                    error_code=ErrorCode.none,
                    error_message="",
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=configs,
                )
            )
    return DescribeConfigsResponse(throttle_time=NO_THROTTLE, results=tuple(results))


def error_response(request: DescribeConfigsRequest, error: ApiError) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        throttle_time=NO_THROTTLE,
        results=tuple(_failed(resource, error) for resource in request.resources),
    )


def _configs(
    broker: Broker, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> tuple[DescribeConfigsResourceResult, ...]:
    wanted = resource.configuration_keys
    if resource.resource_type == BROKER_LOGGER_RESOURCE:
        return describe_loggers(
            broker.node_id,
            resource.resource_name,
            wanted,
            documented=request.include_documentation,
        )
    return tuple(
        _config(entry, resource, request)
        for entry in _entries(broker, resource)
        if not wanted or entry.key.name in wanted
    )


def _entries(broker: Broker, resource: DescribeConfigsResource) -> list[ConfigEntry]:
    name = resource.resource_name
    if resource.resource_type == TOPIC_RESOURCE:
        validate_topic_name(name)
        if name not in broker.image.topics:
            raise ApiError(ErrorCode.unknown_topic_or_partition, f"there is no topic {name!r}")
        return broker.configs.describe_topic(broker.image.topic_configs(name))
    if resource.resource_type == GROUP_RESOURCE:
        if not name:
            raise ApiError(ErrorCode.invalid_request, "the name of the group is empty")
        return broker.configs.describe_group(broker.image.group_configs(name))
    if resource.resource_type == CLIENT_METRICS_RESOURCE:
        if not name:
            raise ApiError(ErrorCode.invalid_request, "the subscription's name is empty")
        return broker.configs.describe_client_metrics(broker.image.client_metrics_configs(name))
    if resource.resource_type != BROKER_RESOURCE:
        raise ApiError(
            ErrorCode.invalid_request,
            f"configs of resource type {resource.resource_type} cannot be described",
        )
    if not name:
        shared = broker.image.default_broker_configs()
        return [
            _shared_only(entry)
            for entry in broker.configs.describe_broker()
            if entry.key.name in shared
        ]
    if name != str(broker.node_id):
        raise ApiError(
            ErrorCode.invalid_request,
            f"this is broker {broker.node_id}; ask broker {name} for its own configs",
        )
    return broker.configs.describe_broker()


def _shared_only(entry: ConfigEntry) -> ConfigEntry:
    """The entry for a broker without values of its own."""
    return ConfigEntry(
        entry.key,
        tuple(
            each for each in entry.synonyms if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        ),
    )


def _config(
    entry: ConfigEntry, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    key = entry.key
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=key.name,
        value=None if key.sensitive else entry.value,
        read_only=resource.resource_type == BROKER_RESOURCE and not key.dynamic,
        config_source=i8(entry.source),
        is_sensitive=key.sensitive,
        synonyms=tuple(
            DescribeConfigsSynonym(
                name=synonym.name,
                value=None if key.sensitive else synonym.value,
                source=i8(synonym.source),
            )
            for synonym in synonyms
        ),
        config_type=i8(key.type),
        documentation=key.doc if request.include_documentation else None,
    )


def _failed(resource: DescribeConfigsResource, error: ApiError) -> DescribeConfigsResult:
    return refused(
        DescribeConfigsResult,
        error,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
