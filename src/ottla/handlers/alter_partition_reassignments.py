"""AlterPartitionReassignments (45): v0-v1.

Assigns other replicas to partitions, or cancels that (KIP-455).

v1  whether the number of replicas may change
"""

from collections.abc import Awaitable

from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())
