"""IncrementalAlterConfigs (44): v0-v1.

Sets, deletes, appends to and subtracts from configs (KIP-339).

v1  flexible
"""

from dataclasses import replace
from itertools import chain

from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from ottla.handlers.authorization import config_refusals
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    refusals = config_refusals(context, Operation.ALTER_CONFIGS, request.resources)
    resources = [(one.resource_type, one.resource_name) for one in request.resources]
    pairs = list(zip(request.resources, map(refusals.get, resources), strict=True))
    allowed = tuple(one for one, refusal in pairs if refusal is None)
    response: IncrementalAlterConfigsResponse = await broker.controller.call(
        replace(request, resources=allowed)
    )
    refused = (
        error_response(replace(request, resources=(one,)), refusal).responses
        for one, refusal in pairs
        if refusal is not None
    )
    return replace(response, responses=(*response.responses, *chain.from_iterable(refused)))


def error_response(
    request: IncrementalAlterConfigsRequest, error: ApiError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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
