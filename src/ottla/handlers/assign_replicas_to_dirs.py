"""AssignReplicasToDirs (73): v0.

A broker with several log directories tells the controller which replicas are in which (KIP-858).
"""

from collections.abc import Awaitable

from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: AssignReplicasToDirsRequest
) -> Awaitable[AssignReplicasToDirsResponse]:
    return broker.controller.call(request)


def error_response(_: AssignReplicasToDirsRequest, error: ApiError) -> AssignReplicasToDirsResponse:
    return AssignReplicasToDirsResponse(
        throttle_time=NO_THROTTLE, error_code=error.code, directories=()
    )
