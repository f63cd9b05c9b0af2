"""DescribeQuorum (55): v0-v2.

Who leads the metadata quorum, who votes, who observes, and how far each of them is.

v1  times of the last fetch (KIP-836)
v2  directory ids and addresses (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.protocol.errors import ApiError
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest
) -> Awaitable[object]:
    require_cluster(context, Operation.DESCRIBE)
    return broker.controller.call(request, caller=context.caller())


def error_response(_: DescribeQuorumRequest, error: ApiError) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=error.code, error_message=error.message, topics=(), nodes=()
    )
