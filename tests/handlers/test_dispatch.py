"""The dispatch over connections, with the real codec."""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.static.primitive import i8
from tests.controller.test_topics import creation, topic
from tests.handlers.test_metadata import asking
from tests.kits.single_node import SingleNode

from ottla.handlers import describe_cluster
from ottla.handlers.api import UNLISTED, Api, ColdApi, HotApi
from ottla.handlers.broker import Broker
from ottla.handlers.table import API_TABLE, TELEMETRY_KEYS
from ottla.network.session import Session
from ottla.protocol.codec import (
    api_versions_supported_by_codec,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import RequestHeader

API_VERSIONS, METADATA, CREATE_TOPICS, DESCRIBE_CLUSTER = 18, 3, 19, 60
SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1")
CLUSTER = DescribeClusterRequest(
    include_cluster_authorized_operations=False, endpoint_type=i8(1), include_fenced_brokers=False
)


def test_the_table_claims_what_the_codec_can_read() -> None:
    for api in API_TABLE.values():
        low, high = api_versions_supported_by_codec(api.key)
        assert low <= api.low <= api.high <= high


def test_every_version_of_a_client_is_answered(node: SingleNode) -> None:
    advertised = set(API_TABLE) - UNLISTED - TELEMETRY_KEYS  # It serves no metrics.
    for version in range(5):
        response = node.ask(API_VERSIONS, version, SOFTWARE)
        assert {api.api_key for api in response.api_keys} == advertised
    for version in range(14):
        response = node.ask(METADATA, version, asking("orders"))
        assert response.topics[0].error_code is ErrorCode.none
    for version in range(3):
        response = node.ask(DESCRIBE_CLUSTER, version, CLUSTER)
        assert response.brokers[0].host == "public"


def received(node: SingleNode, api_key: int, version: int) -> tuple[int, Any]:
    """The next answer, with its correlation id."""
    frame = node.client.receive()
    assert frame is not None
    return read_response(api_key, version, frame)


def test_answers_come_in_the_order_of_the_requests(node: SingleNode) -> None:
    node.client.send(
        write_request(CREATE_TOPICS, 7, 1, "client", creation(topic("orders")))
        + write_request(API_VERSIONS, 3, 2, "client", SOFTWARE)
    )
    assert received(node, CREATE_TOPICS, 7)[0] == 1
    assert received(node, API_VERSIONS, 3)[0] == 2


def test_an_unknown_version_of_api_versions_gets_a_body_of_version_zero(node: SingleNode) -> None:
    frame = bytearray(write_request(API_VERSIONS, 4, 7, "client", SOFTWARE))
    frame[6:8] = (9).to_bytes(2, "big")
    node.client.send(bytes(frame))
    correlation_id, response = received(node, API_VERSIONS, 0)
    assert correlation_id == 7
    assert response.error_code is ErrorCode.unsupported_version
    assert [(api.api_key, api.max_version) for api in response.api_keys] == [(API_VERSIONS, 5)]
    assert node.ask(API_VERSIONS, 4, SOFTWARE).error_code is ErrorCode.none


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (999, 0, "API key 999 is not served"),
        (METADATA, 99, "version 99 of Metadata is not served; versions 0 to 13 are"),
        (METADATA, -1, "version -1 of Metadata"),
    ],
)
def test_an_unknown_api_or_version_closes_the_connection(
    node: SingleNode, caplog: pytest.LogCaptureFixture, key: int, version: int, message: str
) -> None:
    frame = bytearray(write_request(METADATA, 9, 7, "client", asking("orders")))
    frame[4:6] = key.to_bytes(2, "big")
    frame[6:8] = version.to_bytes(2, "big", signed=True)
    with caplog.at_level(logging.WARNING):
        node.client.send(bytes(frame))
        assert node.client.receive() is None
    assert node.client.received == b""
    assert message in caplog.text


def test_a_body_that_is_no_request_closes_the_connection(node: SingleNode) -> None:
    frame = bytearray(write_request(METADATA, 9, 7, "client", asking("orders")))
    frame[-9:] = b"\xff" * 9
    node.client.send(bytes(frame))
    assert node.client.receive() is None
    assert node.client.received == b""


Fail = Callable[[Exception], Awaitable[None]]


def fail_now(error: Exception) -> Awaitable[None]:
    raise error


async def fail_in_a_task(error: Exception) -> None:
    raise error


def fail_by_a_future(error: Exception) -> Awaitable[None]:
    future = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future


each_way = pytest.mark.parametrize("fail", [fail_now, fail_in_a_task, fail_by_a_future])


def failing(
    error: Exception, fail: Fail, error_response: object = describe_cluster.error_response
) -> Mapping[int, Api]:
    module = SimpleNamespace(
        handle=lambda broker, context, request: fail(error), error_response=error_response
    )
    cold = API_TABLE[DESCRIBE_CLUSTER]
    assert isinstance(cold, ColdApi)
    return {**API_TABLE, DESCRIBE_CLUSTER: dataclasses.replace(cold, module=module)}


@each_way
def test_a_refusal_is_answered(node: SingleNode, fail: Fail) -> None:
    node.use(table=failing(ApiError(ErrorCode.not_controller, "ask another"), fail))
    response = node.ask(DESCRIBE_CLUSTER, 2, CLUSTER)
    assert response.error_code is ErrorCode.not_controller
    assert response.error_message == "ask another"


@each_way
def test_a_bug_in_a_handler_is_logged_and_the_connection_goes_on(
    node: SingleNode, caplog: pytest.LogCaptureFixture, fail: Fail
) -> None:
    node.use(table=failing(KeyError("oops"), fail))
    with caplog.at_level(logging.ERROR):
        response = node.ask(DESCRIBE_CLUSTER, 2, CLUSTER)
    assert response.error_code is ErrorCode.unknown_server_error
    assert node.ask(API_VERSIONS, 3, SOFTWARE).error_code is ErrorCode.none
    assert f"DescribeCluster of {node.client.session.peer_address}" in caplog.text
    assert "oops" in caplog.text


@each_way
def test_what_cannot_be_answered_closes_the_connection_and_nothing_else(
    node: SingleNode, caplog: pytest.LogCaptureFixture, fail: Fail
) -> None:
    node.use(table=failing(KeyError("oops"), fail, lambda request, error: "no response"))
    with caplog.at_level(logging.ERROR):
        node.client.send(write_request(DESCRIBE_CLUSTER, 2, 7, "client", CLUSTER))
        assert node.client.receive() is None
    assert node.client.received == b""
    assert f"closing the connection of {node.client.session.peer_address}" in caplog.text
    assert node.connect().ask(API_VERSIONS, 3, SOFTWARE).error_code is ErrorCode.none


def test_a_hot_api_gets_the_frame(node: SingleNode) -> None:
    def handle(broker: Broker, session: Session, header: RequestHeader, frame: memoryview) -> None:
        assert header.client_id == "test-client"
        response = describe_cluster.error_response(
            CLUSTER, ApiError(ErrorCode.none, f"{len(frame)} bytes")
        )
        session.send_now(write_response(60, header.api_version, header.correlation_id, response))

    hot = HotApi(DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, handle, claimed_low=0)
    node.use(table={**API_TABLE, DESCRIBE_CLUSTER: hot})
    node.client.send(write_request(DESCRIBE_CLUSTER, 2, 7, "test-client", CLUSTER))
    assert received(node, DESCRIBE_CLUSTER, 2)[1].error_message == "26 bytes"
