"""ListConfigResources (74): v0-v1.

The names of resources that can have configs (KIP-1142).

v0  subscriptions to client metrics only (KIP-714)
v1  any type of resource; no type means all of them
"""

from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.list_config_resources.v1.response import ConfigResource, ListConfigResourcesResponse
from kio.static.primitive import i8

from ottla.controller.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.broker_loggers import BROKER_LOGGER_RESOURCE
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation

_TYPES = (
    TOPIC_RESOURCE,
    BROKER_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
)


def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    require_cluster(context, Operation.DESCRIBE_CONFIGS)
    strays = [type_ for type_ in request.resource_types if type_ not in _TYPES]
    if strays:
        raise ApiError(ErrorCode.unsupported_version, f"unknown resource type {strays[0]}")
    wanted = request.resource_types or _TYPES
    if context.api_version == 0:
        wanted = (CLIENT_METRICS_RESOURCE,)
    brokers = [str(broker_id) for broker_id in sorted(broker.image.brokers)]
    names = {
        TOPIC_RESOURCE: sorted(broker.image.topics),
        BROKER_RESOURCE: brokers,
        BROKER_LOGGER_RESOURCE: brokers,
        CLIENT_METRICS_RESOURCE: _configured(broker, CLIENT_METRICS_RESOURCE),
        GROUP_RESOURCE: _configured(broker, GROUP_RESOURCE),
    }
    return ListConfigResourcesResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        config_resources=tuple(
            ConfigResource(resource_name=name, resource_type=resource_type)
            for resource_type in wanted
            for name in names[resource_type]
        ),
    )


def _configured(broker: Broker, resource_type: i8) -> list[str]:
    return sorted(name for kind, name in broker.image.configs if kind == resource_type)
