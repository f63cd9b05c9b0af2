"""IncrementalAlterConfigs (44): v0-v1.

Sets, deletes, appends to and subtracts from configs (KIP-339).

v1  flexible
"""

from collections.abc import Awaitable

from kio.schema.incremental_alter_configs.v1.request import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: IncrementalAlterConfigsRequest
) -> Awaitable[IncrementalAlterConfigsResponse]:
    return broker.controller.call(request)


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
