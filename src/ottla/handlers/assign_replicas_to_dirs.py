"""AssignReplicasToDirs (73): v0.

A broker with several log directories reports to the controller where its replicas are (KIP-858).
"""

from collections.abc import Awaitable

from kio.schema.assign_replicas_to_dirs.v0.request import AssignReplicasToDirsRequest
from kio.schema.assign_replicas_to_dirs.v0.response import AssignReplicasToDirsResponse

from ottla.handlers.broker import Broker, RequestContext


def handle(
    broker: Broker, _: RequestContext, request: AssignReplicasToDirsRequest
) -> Awaitable[AssignReplicasToDirsResponse]:
    return broker.controller.call(request)
