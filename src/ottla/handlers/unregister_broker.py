"""UnregisterBroker (64): v0.

A stopped broker leaves the cluster permanently.
"""

from collections.abc import Awaitable

from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest
) -> Awaitable[UnregisterBrokerResponse]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())
