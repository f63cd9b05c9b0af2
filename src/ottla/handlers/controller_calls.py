"""Handlers that leave a request to the controller, or to the quorum of the metadata log."""

from collections.abc import Awaitable, Callable

from ottla.handlers.authorization import require_authorizer, require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def call_controller(broker: Broker, _: RequestContext, request: object) -> Awaitable[object]:
    """For a request of another broker's own."""
    return broker.controller.call(request)


def call_quorum(broker: Broker, _: RequestContext, request: object) -> Awaitable[object]:
    return broker.quorum.handle(request)


def call_controller_with(
    operation: Operation,
) -> Callable[[Broker, RequestContext, object], Awaitable[object]]:
    """For a client's request, which takes this permission on the cluster."""

    def handle(broker: Broker, context: RequestContext, request: object) -> Awaitable[object]:
        require_cluster(context, operation)
        return broker.controller.call(request, caller=context.caller())

    return handle


def change_acls(broker: Broker, context: RequestContext, request: object) -> Awaitable[object]:
    require_cluster(context, Operation.ALTER)
    require_authorizer(broker)
    return broker.controller.call(request, caller=context.caller())
