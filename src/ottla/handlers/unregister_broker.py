"""UnregisterBroker (64): v0.

A broker that has stopped leaves the cluster for good.
"""

from collections.abc import Awaitable

from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest
) -> Awaitable[UnregisterBrokerResponse]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())


def error_response(_: UnregisterBrokerRequest, error: ApiError) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(
        throttle_time=NO_THROTTLE, error_code=error.code, error_message=error.message
    )
