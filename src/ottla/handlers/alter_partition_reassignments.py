"""AlterPartitionReassignments (45): v0-v1.

Gives partitions other replicas, or takes that back (KIP-455).

v1  whether the number of replicas may change
"""

from collections.abc import Awaitable

from kio.schema.alter_partition_reassignments.v1.request import AlterPartitionReassignmentsRequest
from kio.schema.alter_partition_reassignments.v1.response import AlterPartitionReassignmentsResponse

from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.protocol.times import NO_THROTTLE


def handle(
    broker: Broker, _: RequestContext, request: AlterPartitionReassignmentsRequest
) -> Awaitable[AlterPartitionReassignmentsResponse]:
    return broker.controller.call(request)


def error_response(
    _: AlterPartitionReassignmentsRequest, error: ApiError
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=error.code,
        error_message=error.message,
        responses=(),
    )
