"""Whatever a client asks, it gets an answer of the right shape, and no handler fails."""

import dataclasses
import logging
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.clients.versions import request_type
from tests.controller.test_topics import creation, topic
from tests.handlers.brokers import FakeSession, Node

from ottla.handlers.api import BETWEEN_BROKERS, ColdApi
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.dispatch import make_dispatch
from ottla.handlers.table import API_TABLE
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode

COLD_APIS = [api for api in API_TABLE.values() if isinstance(api, ColdApi)]
OFFSET_COMMIT = API_TABLE[8]


@pytest.fixture(scope="module")
def node():
    node = Node(controller_quorum_request_timeout_ms=10)
    node.call(handle_create_topics, creation(topic("orders", 2, 1)))
    node.replicas.append("orders", 0, 1000, 2000)
    yield node
    node.close()


def answer(node, table, frame, *, may_act_as_node=True):
    session = FakeSession()
    session.may_act_as_node = may_act_as_node
    make_dispatch(node.broker, table)(session, memoryview(bytearray(frame[4:])))
    node.run(session.answered.wait())
    (answered,) = session.sent
    return memoryview(answered)[4:]


def handled_by(api, handle):
    module = SimpleNamespace(handle=handle, error_response=api.module.error_response)
    return dataclasses.replace(api, module=module)


@pytest.mark.parametrize("api", [*COLD_APIS, OFFSET_COMMIT], ids=lambda api: api.name)
def test_any_request_is_answered(node, api, caplog):
    @settings(
        max_examples=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(st.data())
    def run(data):
        version = data.draw(st.integers(api.low, api.high))
        request = data.draw(st.from_type(request_type(api.key, version)))
        frame = write_request(api.key, version, 7, "client", request)
        response = answer(node, API_TABLE, frame)
        assert read_response(api.key, version, response)[0] == 7

    with caplog.at_level(logging.ERROR):
        run()
    # What asyncio says when it finds what another test left behind is no concern of this one.
    assert [record for record in caplog.records if record.name.startswith("ottla.")] == []


@pytest.mark.parametrize("api", COLD_APIS, ids=lambda api: api.name)
def test_any_request_can_be_refused(node, api):
    @settings(max_examples=20)
    @given(st.data())
    def run(data):
        version = data.draw(st.integers(api.low, api.high))
        request = data.draw(st.from_type(request_type(api.key, version)))
        frame = write_request(api.key, version, 7, "client", request)

        def refuse(broker, context, request):
            raise ApiError(ErrorCode.not_controller, "ask another")

        refusing = {api.key: handled_by(api, refuse)}
        assert read_response(api.key, version, answer(node, refusing, frame))[0] == 7

    run()


@pytest.mark.parametrize("key", sorted(BETWEEN_BROKERS))
def test_what_only_nodes_ask_is_refused_from_others(node, key):
    """On a listener that authenticates, from somebody who is not one of super.users."""
    api = API_TABLE[key]
    handled = []
    table = {key: handled_by(api, lambda *call: handled.append(call))}

    @settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
    @given(st.from_type(request_type(key, api.high)))
    def run(request):
        frame = write_request(key, api.high, 7, "client", request)
        response = answer(node, table, frame, may_act_as_node=False)
        assert read_response(key, api.high, response)[0] == 7

    run()
    assert handled == []
