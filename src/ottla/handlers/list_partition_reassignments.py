"""ListPartitionReassignments (46): v0.

The ongoing reassignments: of the named partitions, or all.
"""

from collections.abc import Awaitable

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Awaitable[ListPartitionReassignmentsResponse]:
    require_cluster(context, Operation.DESCRIBE)
    return broker.controller.call(request, caller=context.caller())
