"""DescribeQuorum (55): v0-v2.

The leader, the voters and the observers of the metadata quorum, and their log ends.

v1  times of the last fetch (KIP-836)
v2  directory ids and addresses (KIP-853)
"""

from collections.abc import Awaitable

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest

from ottla.handlers.authorization import require_cluster
from ottla.handlers.broker import Broker, RequestContext
from ottla.security.acls import Operation


def handle(
    broker: Broker, context: RequestContext, request: DescribeQuorumRequest
) -> Awaitable[object]:
    require_cluster(context, Operation.DESCRIBE)
    return broker.controller.call(request, caller=context.caller())
