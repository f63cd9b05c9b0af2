"""BrokerRegistration (62): v0-v4.

A broker joins the cluster, and gets the epoch that it says with everything it asks later.

v2  log directories
v3  the epoch before a clean shutdown (KIP-966)
v4  a feature may start at level 0 (KIP-1022)
"""

from collections.abc import Awaitable

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: BrokerRegistrationRequest
) -> Awaitable[BrokerRegistrationResponse]:
    return broker.controller.call(request)


def error_response(_: BrokerRegistrationRequest, error: ApiError) -> BrokerRegistrationResponse:
    return BrokerRegistrationResponse(throttle_time=NO_THROTTLE, error_code=error.code)
