"""Any request gets a well-formed response, and no handler fails."""

import dataclasses
import functools
import logging
import typing
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from tests.clients.versions import request_type
from tests.controller.test_topics import creation, topic
from tests.kits.single_node import Client, SingleNode

from ottla.handlers.api import BETWEEN_BROKERS, Api, ColdApi
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.table import API_TABLE
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError, ErrorCode

COLD_APIS = [api for api in API_TABLE.values() if isinstance(api, ColdApi)]
OFFSET_COMMIT = API_TABLE[8]
ENTITIES_MAX = 3

Handler = Callable[[Broker, RequestContext, Any], Any]


@pytest.fixture(scope="module")
def shared_node() -> Iterator[SingleNode]:
    node = SingleNode(controller_quorum_request_timeout_ms=10)
    node.call(handle_create_topics, creation(topic("orders", 2, 1)))
    node.append("orders", 0, 1000, 2000)
    yield node
    node.close()


@pytest.fixture
def node(shared_node: SingleNode) -> Iterator[SingleNode]:
    yield shared_node
    shared_node.use(table=API_TABLE)


def answer(client: Client, frame: bytes) -> memoryview:
    client.send(frame)
    answered = client.receive()
    assert answered is not None, "the connection has ended"
    return answered


def handled_by(api: ColdApi, handle: Handler) -> ColdApi:
    module = SimpleNamespace(handle=handle, error_response=api.error_response)
    return dataclasses.replace(api, module=module)


@functools.cache
def any_entity(type_: type) -> st.SearchStrategy[Any]:
    """With few items in arrays of entities, because nesting multiplies them."""
    hints = typing.get_type_hints(type_)
    values = {
        field.name: _any_value(field, hints[field.name]) for field in dataclasses.fields(type_)
    }
    return st.builds(type_, **values)


def _any_value(field: Any, hint: Any) -> st.SearchStrategy[Any]:
    kind = classify_field(field)
    if not isinstance(kind, EntityField | EntityTupleField):
        return st.from_type(hint)
    strategy = any_entity(kind.type_)
    if kind.is_array:
        strategy = st.lists(strategy, max_size=ENTITIES_MAX).map(tuple)
    return st.none() | strategy if type(None) in typing.get_args(hint) else strategy


@pytest.mark.parametrize("api", [*COLD_APIS, OFFSET_COMMIT], ids=lambda api: api.name)
def test_any_request_is_answered(
    node: SingleNode, api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    @settings(
        max_examples=30,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        version = data.draw(st.integers(api.low, api.high))
        request = data.draw(any_entity(request_type(api.key, version)))
        frame = write_request(api.key, version, 7, "client", request)
        assert read_response(api.key, version, answer(node.client, frame))[0] == 7

    with caplog.at_level(logging.ERROR):
        run()
    # Ignore asyncio's complaints about what other tests left behind.
    assert [record for record in caplog.records if record.name.startswith("ottla.")] == []


def refuse(broker: Broker, context: RequestContext, request: object) -> None:
    raise ApiError(ErrorCode.not_controller, "ask another")


@pytest.mark.parametrize("api", COLD_APIS, ids=lambda api: api.name)
def test_any_request_can_be_refused(node: SingleNode, api: ColdApi) -> None:
    node.use(table={api.key: handled_by(api, refuse)})

    @settings(max_examples=20)
    @given(st.data())
    def run(data: st.DataObject) -> None:
        version = data.draw(st.integers(api.low, api.high))
        request = data.draw(any_entity(request_type(api.key, version)))
        frame = write_request(api.key, version, 7, "client", request)
        assert read_response(api.key, version, answer(node.client, frame))[0] == 7

    run()


@pytest.mark.parametrize("key", sorted(BETWEEN_BROKERS))
def test_what_only_nodes_ask_is_refused_from_others(node: SingleNode, key: int) -> None:
    """On a listener that authenticates, from a user not in super.users."""
    api = API_TABLE[key]
    assert isinstance(api, ColdApi)
    handled: list[object] = []
    node.use(table={key: handled_by(api, lambda *call: handled.append(call))})
    stranger = node.connect()
    stranger.session.may_act_as_node = False

    @settings(max_examples=3, suppress_health_check=[HealthCheck.too_slow])
    @given(any_entity(request_type(key, api.high)))
    def run(request: object) -> None:
        frame = write_request(key, api.high, 7, "client", request)
        assert read_response(key, api.high, answer(stranger, frame))[0] == 7

    run()
    assert handled == []
