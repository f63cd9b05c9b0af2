"""BrokerRegistration (62): v0-v4.

A broker joins the cluster, and gets the epoch that it sends with all later requests.

v2  log directories
v3  the epoch before a clean shutdown (KIP-966)
v4  a feature may start at level 0 (KIP-1022)
"""

from collections.abc import Awaitable

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: BrokerRegistrationRequest
) -> Awaitable[BrokerRegistrationResponse]:
    return broker.controller.call(request)
