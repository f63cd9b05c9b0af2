"""IncrementalAlterConfigs (44): v0-v1.

Sets, deletes, appends to and subtracts from configs (KIP-339). Log levels are set here, in the
process that is asked (KIP-412); everything else by the controller.

v1  flexible
"""

from dataclasses import replace

from kio.schema.incremental_alter_configs.v1.request import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from ottla.handlers.authorization import config_refusal
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.broker_loggers import BROKER_LOGGER_RESOURCE, alter_loggers
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    pairs = [
        (resource, config_refusal(context, Operation.ALTER_CONFIGS, resource))
        for resource in request.resources
    ]
    own = [resource for resource, refusal in pairs if refusal is None and _is_logger(resource)]
    allowed = tuple(
        resource for resource, refusal in pairs if refusal is None and not _is_logger(resource)
    )
    response = IncrementalAlterConfigsResponse(throttle_time=NO_THROTTLE, responses=())
    if allowed:
        response = await broker.controller.call(
            replace(request, resources=allowed), caller=context.caller()
        )
    altered = (_alter_loggers(broker, request, resource) for resource in own)
    denied = (_refused(resource, refusal) for resource, refusal in pairs if refusal is not None)
    return replace(response, responses=(*response.responses, *altered, *denied))


def _is_logger(resource: AlterConfigsResource) -> bool:
    return resource.resource_type == BROKER_LOGGER_RESOURCE


def _alter_loggers(
    broker: Broker, request: IncrementalAlterConfigsRequest, resource: AlterConfigsResource
) -> AlterConfigsResourceResponse:
    try:
        alter_loggers(broker.node_id, resource, validate_only=request.validate_only)
    except ApiError as error:
        return _refused(resource, error)
    return AlterConfigsResourceResponse(
        error_code=ErrorCode.none,
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )


def error_response(
    request: IncrementalAlterConfigsRequest, error: ApiError
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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
