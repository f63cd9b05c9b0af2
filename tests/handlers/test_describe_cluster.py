from dataclasses import replace

import pytest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterBroker, DescribeClusterResponse

from ottla.handlers.describe_cluster import error_response
from ottla.handlers.describe_cluster import handle as handle_describe_cluster
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE


def asking(endpoint_type=1, fenced=False):
    return DescribeClusterRequest(
        include_cluster_authorized_operations=False,
        endpoint_type=endpoint_type,
        include_fenced_brokers=fenced,
    )


def test_the_brokers_of_the_listener(node):
    assert node.call(handle_describe_cluster, asking()) == DescribeClusterResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        cluster_id=node.broker.cluster_id,
        controller_id=1,
        brokers=(
            DescribeClusterBroker(
                broker_id=1, host="public", port=9092, rack="r1", is_fenced=False
            ),
        ),
    )


def test_fenced_brokers_on_request(node):
    node.register_another(2)

    def fenced(request):
        response = node.call(handle_describe_cluster, request, listener_name="INTERNAL")
        return {broker.broker_id: broker.is_fenced for broker in response.brokers}

    assert fenced(asking()) == {1: False}
    assert fenced(asking(fenced=True)) == {1: False, 2: True}


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [(2, ErrorCode.mismatched_endpoint_type), (3, ErrorCode.unsupported_endpoint_type)],
)
def test_other_endpoints_are_refused(node, endpoint_type, code):
    request = asking(endpoint_type)
    with pytest.raises(ApiError) as caught:
        node.call(handle_describe_cluster, request)
    assert error_response(request, caught.value).error_code is code


def test_a_listener_of_controllers_tells_of_the_nodes_that_have_it(node):
    settings = node.broker.settings._replace(controller_listeners=frozenset({"PLAINTEXT"}))
    node.use(replace(node.broker, settings=settings))
    response = node.call(handle_describe_cluster, asking(endpoint_type=2))
    assert (response.error_code, response.endpoint_type) == (ErrorCode.none, 2)
    assert [broker.broker_id for broker in response.brokers] == [1]
