"""AlterConfigs (33): v0-v2.

Replaces all configs of a resource: what is not named goes back to its default.

v2  flexible
"""

from collections.abc import Awaitable

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.response import AlterConfigsResourceResponse, AlterConfigsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: AlterConfigsRequest
) -> Awaitable[AlterConfigsResponse]:
    return broker.controller.call(request)


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
