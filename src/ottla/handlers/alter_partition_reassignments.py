"""AlterPartitionReassignments (45): v0-v1.

Gives partitions other replicas, or takes that back (KIP-455).

v1  whether the number of replicas may change
"""

from collections.abc import Awaitable

from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    require_cluster(context, Operation.ALTER)
    return broker.controller.call(request, caller=context.caller())


def error_response(
    _: AlterPartitionReassignmentsRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        error_message=error.message,
        responses=(),
    )
