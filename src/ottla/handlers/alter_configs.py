"""AlterConfigs (33): v0-v2.

Replaces all configs of a resource: keys not in the request return to their defaults.

v2  flexible
"""

from dataclasses import replace
from itertools import chain

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse, AlterConfigsResponse

from ottla.handlers.authorization import config_refusals
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


async def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    refusals = config_refusals(context, Operation.ALTER_CONFIGS, request.resources)
    resources = [(resource.resource_type, resource.resource_name) for resource in request.resources]
    pairs = list(zip(request.resources, map(refusals.get, resources), strict=True))
    allowed = tuple(resource for resource, refusal in pairs if refusal is None)
    response: AlterConfigsResponse = await broker.controller.call(
        replace(request, resources=allowed), caller=context.caller()
    )
    refused = (
        error_response(replace(request, resources=(resource,)), refusal).responses
        for resource, refusal in pairs
        if refusal is not None
    )
    return replace(response, responses=(*response.responses, *chain.from_iterable(refused)))


def error_response(request: AlterConfigsRequest, error: ApiError) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        throttle_time=NO_THROTTLE,
        responses=tuple(
            AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ),
    )
