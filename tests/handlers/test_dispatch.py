"""The dispatch over real sockets, with the real codec."""

import asyncio
import dataclasses
import logging
from types import SimpleNamespace

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from tests.controller.test_topics import creation, topic
from tests.handlers.brokers import Node
from tests.handlers.test_metadata import asking

from ottla.handlers import describe_cluster
from ottla.handlers.api import UNTOLD, HotApi, claimed_versions
from ottla.handlers.dispatch import make_dispatch
from ottla.handlers.table import API_TABLE
from ottla.network.config import NetworkConfig
from ottla.network.endpoints import Endpoint
from ottla.network.server import Server
from ottla.protocol.codec import (
    api_versions_supported_by_codec,
    read_response,
    write_request,
    write_response,
)
from ottla.protocol.errors import ApiError, ErrorCode

API_VERSIONS, METADATA, CREATE_TOPICS, DESCRIBE_CLUSTER = 18, 3, 19, 60
SOFTWARE = ApiVersionsRequest(client_software_name="test", client_software_version="1")
CLUSTER = DescribeClusterRequest(
    include_cluster_authorized_operations=False, endpoint_type=1, include_fenced_brokers=False
)


class Client:
    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.correlation_id = 0

    def send(self, api_key, version, request):
        self.correlation_id += 1
        self.writer.write(
            write_request(api_key, version, self.correlation_id, "test-client", request)
        )
        return self.correlation_id

    async def receive(self, api_key, version):
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return read_response(api_key, version, memoryview(await self.reader.readexactly(size)))

    async def ask(self, api_key, version, request):
        sent = self.send(api_key, version, request)
        received, response = await self.receive(api_key, version)
        assert received == sent
        return response


class Served:
    """A node behind a socket, with the table of the broker or another one."""

    def __init__(self):
        self.node = None

    def run(self, scenario, table=API_TABLE):
        self.node = Node(api_versions=claimed_versions(table.values(), two_phase=True))
        try:
            return self.node.run(self._serve(scenario, table))
        finally:
            self.node.close()

    async def _serve(self, scenario, table):
        server = Server(
            NetworkConfig(listeners=(Endpoint("PLAINTEXT", "127.0.0.1", 0),)),
            make_dispatch(self.node.broker, table),
            monotonic_ms=self.node.broker.clock.monotonic_ms,
        )
        await server.bind()
        server.start()
        client = Client(*await asyncio.open_connection("127.0.0.1", server.endpoints[0].port))
        try:
            return await scenario(client)
        finally:
            client.writer.close()
            await server.stop()
            await self.node.broker.supervisor.stop()


@pytest.fixture
def served():
    return Served()


def test_the_table_claims_what_the_codec_can_read():
    for api in API_TABLE.values():
        low, high = api_versions_supported_by_codec(api.key)
        assert low <= api.low <= api.high <= high


def test_every_version_of_a_client_is_answered(served):
    async def scenario(client):
        for version in range(5):
            response = await client.ask(API_VERSIONS, version, SOFTWARE)
            assert {one.api_key for one in response.api_keys} == set(API_TABLE) - UNTOLD
        for version in range(14):
            response = await client.ask(METADATA, version, asking("orders"))
            assert response.topics[0].error_code is ErrorCode.none
        for version in range(3):
            response = await client.ask(DESCRIBE_CLUSTER, version, CLUSTER)
            assert response.brokers[0].host == "public"

    served.run(scenario)


def test_answers_come_in_the_order_of_the_requests(served):
    async def scenario(client):
        client.send(CREATE_TOPICS, 7, creation(topic("orders")))
        client.send(API_VERSIONS, 3, SOFTWARE)
        assert (await client.receive(CREATE_TOPICS, 7))[0] == 1
        assert (await client.receive(API_VERSIONS, 3))[0] == 2

    served.run(scenario)


def test_an_unknown_version_of_api_versions_gets_a_body_of_version_zero(served):
    async def scenario(client):
        frame = bytearray(write_request(API_VERSIONS, 4, 7, "test-client", SOFTWARE))
        frame[6:8] = (9).to_bytes(2, "big")
        client.writer.write(frame)
        correlation_id, response = await client.receive(API_VERSIONS, 0)
        assert correlation_id == 7
        assert response.error_code is ErrorCode.unsupported_version
        assert [(one.api_key, one.max_version) for one in response.api_keys] == [(API_VERSIONS, 4)]
        assert (await client.ask(API_VERSIONS, 4, SOFTWARE)).error_code is ErrorCode.none

    served.run(scenario)


@pytest.mark.parametrize(
    ("key", "version", "message"),
    [
        (999, 0, "API key 999 is not served"),
        (METADATA, 99, "version 99 of Metadata is not served; versions 0 to 13 are"),
        (METADATA, -1, "version -1 of Metadata"),
    ],
)
def test_an_unknown_api_or_version_closes_the_connection(served, caplog, key, version, message):
    async def scenario(client):
        frame = bytearray(write_request(METADATA, 9, 7, "test-client", asking("orders")))
        frame[4:6] = key.to_bytes(2, "big")
        frame[6:8] = version.to_bytes(2, "big", signed=True)
        client.writer.write(frame)
        assert await client.reader.read() == b""

    with caplog.at_level(logging.WARNING):
        served.run(scenario)
    assert message in caplog.text


def test_a_body_that_is_no_request_closes_the_connection(served):
    async def scenario(client):
        frame = bytearray(write_request(METADATA, 9, 7, "test-client", asking("orders")))
        frame[-9:] = b"\xff" * 9
        client.writer.write(frame)
        assert await client.reader.read() == b""

    served.run(scenario)


def fail_now(error):
    raise error


async def fail_in_a_task(error):
    raise error


def fail_by_a_future(error):
    future = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future


each_way = pytest.mark.parametrize("fail", [fail_now, fail_in_a_task, fail_by_a_future])


def failing(error, fail):
    module = SimpleNamespace(
        handle=lambda broker, context, request: fail(error),
        error_response=describe_cluster.error_response,
    )
    broken = dataclasses.replace(API_TABLE[DESCRIBE_CLUSTER], module=module)
    return API_TABLE | {DESCRIBE_CLUSTER: broken}


@each_way
def test_a_refusal_is_answered(served, fail):
    async def scenario(client):
        response = await client.ask(DESCRIBE_CLUSTER, 2, CLUSTER)
        assert response.error_code is ErrorCode.not_controller
        assert response.error_message == "ask another"

    served.run(scenario, failing(ApiError(ErrorCode.not_controller, "ask another"), fail))


@each_way
def test_a_bug_in_a_handler_is_logged_and_the_connection_goes_on(served, caplog, fail):
    async def scenario(client):
        response = await client.ask(DESCRIBE_CLUSTER, 2, CLUSTER)
        assert response.error_code is ErrorCode.unknown_server_error
        assert (await client.ask(API_VERSIONS, 3, SOFTWARE)).error_code is ErrorCode.none

    with caplog.at_level(logging.ERROR):
        served.run(scenario, failing(KeyError("oops"), fail))
    assert "DescribeCluster of 127.0.0.1" in caplog.text
    assert "oops" in caplog.text


@each_way
def test_what_cannot_be_answered_closes_the_connection_and_nothing_else(served, caplog, fail):
    async def scenario(client):
        client.send(DESCRIBE_CLUSTER, 2, CLUSTER)
        assert await client.reader.read() == b""

    table = failing(KeyError("oops"), fail)
    table[DESCRIBE_CLUSTER].module.error_response = lambda request, error: "no response"
    with caplog.at_level(logging.ERROR):
        served.run(scenario, table)
    assert "closing the connection of 127.0.0.1" in caplog.text


def test_a_hot_api_gets_the_frame(served):
    def handle(broker, session, header, frame):
        assert header.client_id == "test-client"
        response = describe_cluster.error_response(
            CLUSTER, ApiError(ErrorCode.none, f"{len(frame)} bytes")
        )
        session.send_now(write_response(60, header.api_version, header.correlation_id, response))

    async def scenario(client):
        response = await client.ask(DESCRIBE_CLUSTER, 2, CLUSTER)
        assert response.error_message == "26 bytes"

    hot = HotApi(DESCRIBE_CLUSTER, "DescribeCluster", 0, 2, handle, claimed_low=0)
    served.run(scenario, API_TABLE | {DESCRIBE_CLUSTER: hot})
