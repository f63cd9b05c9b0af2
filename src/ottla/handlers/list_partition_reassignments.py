"""ListPartitionReassignments (46): v0.

The reassignments that go on: of the partitions that are named, or all.
"""

from collections.abc import Awaitable

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: ListPartitionReassignmentsRequest
) -> Awaitable[ListPartitionReassignmentsResponse]:
    require_cluster(context, Operation.DESCRIBE)
    return broker.controller.call(request, caller=context.caller())


def error_response(
    _: ListPartitionReassignmentsRequest, error: ApiError
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE, error_code=error.code, error_message=error.message, topics=()
    )
