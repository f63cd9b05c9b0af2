"""DescribeCluster (60): v0-v2.

v1  brokers or controllers (KIP-919); those only on a listener of controller.listener.names
v2  fenced brokers on request
"""

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse
from kio.schema.types import BrokerId

from ottla.handlers.authorization import cluster_operations
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.cluster_view import addresses
from ottla.handlers.refusals import refused
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

BROKERS = 1
CONTROLLERS = 2


def handle(
    broker: Broker, context: RequestContext, request: DescribeClusterRequest
) -> DescribeClusterResponse:
    is_of_controllers = context.listener_name in broker.settings.controller_listeners
    if request.endpoint_type == CONTROLLERS and not is_of_controllers:
        raise ApiError(
            ErrorCode.mismatched_endpoint_type, "this is a broker; ask a controller's listener"
        )
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise ApiError(
            ErrorCode.unsupported_endpoint_type, f"unknown endpoint type {request.endpoint_type}"
        )
    known = addresses(broker.image, context.listener_name, fenced=request.include_fenced_brokers)
    return DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        endpoint_type=request.endpoint_type,
        cluster_id=broker.cluster_id,
        controller_id=BrokerId(broker.node_id),
        brokers=tuple(
            DescribeClusterBroker(
                broker_id=node.broker.broker_id,
                host=node.host,
                port=node.port,
                rack=node.broker.rack,
                is_fenced=node.broker.fenced,
            )
            for node in known
        ),
        cluster_authorized_operations=cluster_operations(
            context, asked=request.include_cluster_authorized_operations
        ),
    )


def error_response(request: DescribeClusterRequest, error: ApiError) -> DescribeClusterResponse:
    return refused(DescribeClusterResponse, error, endpoint_type=request.endpoint_type)
