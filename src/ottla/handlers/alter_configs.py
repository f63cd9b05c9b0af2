"""AlterConfigs (33): v0-v2.

Replaces all configs of a resource: keys not in the request return to their defaults.

v2  flexible
"""

from dataclasses import replace

from kio.schema.alter_configs.v2.request import AlterConfigsRequest, AlterConfigsResource
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse, AlterConfigsResponse

from ottla.handlers.authorization import config_refusal
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


async def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    pairs = [
        (resource, config_refusal(context, Operation.ALTER_CONFIGS, resource))
        for resource in request.resources
    ]
    allowed = tuple(resource for resource, refusal in pairs if refusal is None)
    response: AlterConfigsResponse = await broker.controller.call(
        replace(request, resources=allowed), caller=context.caller()
    )
    denied = (_refused(resource, refusal) for resource, refusal in pairs if refusal is not None)
    return replace(response, responses=(*response.responses, *denied))


def error_response(request: AlterConfigsRequest, error: ApiError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(_refused(resource, error) for resource in request.resources),
    )


def _refused(resource: AlterConfigsResource, error: ApiError) -> AlterConfigsResourceResponse:
    return refused(
        AlterConfigsResourceResponse,
        error,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
