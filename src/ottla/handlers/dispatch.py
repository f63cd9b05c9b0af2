"""From a frame to its handler, and from the result to a response.

Hot APIs get the raw frame. For the others the request is parsed, the handler called, and its
response written: at once if it is there, otherwise when its future has it; for a coroutine a task
waits. Later requests on the connection wait as well, unless the table lets them overtake. A handler
that raises ApiError has rejected the request; any other exception is a bug, which is logged and
answered with UNKNOWN_SERVER_ERROR. An API or version that is not in the table ends the connection,
as in Kafka, except for ApiVersions.
"""

import logging
from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping
from types import CoroutineType
from typing import Any, NamedTuple

from ottla.handlers.api import BETWEEN_BROKERS, FOLLOWER_FETCH_KEY, Api, ColdApi, HotApi
from ottla.handlers.authorization import (
    access_of,
    may_abort_transactions,
    may_act_as_node,
    not_a_node,
)
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.response_errors import count_errors
from ottla.handlers.switches import validate_on
from ottla.handlers.throttling import begin_request, end_request, throttled
from ottla.network.durations import ApiCounters
from ottla.network.session import Reply, Session
from ottla.protocol.codec import read_request, write_response
from ottla.protocol.errors import ApiError, ErrorCode, ProtocolError
from ottla.protocol.frames import API_VERSIONS_KEY, RequestHeader, parse_request_header

logger = logging.getLogger(__name__)

_API_KEY_BYTES = 2

Dispatch = Callable[[Session, memoryview], None]


def make_dispatch(broker: Broker, table: Mapping[int, Api]) -> Dispatch:
    counters, quotas = broker.apis, broker.quotas
    for key in (*table, FOLLOWER_FETCH_KEY):
        counters.setdefault(key, ApiCounters())
    served = {key: (api, counters[key]) for key, api in table.items()}

    def dispatch(session: Session, frame: memoryview) -> None:
        header = parse_request_header(frame)
        key, version, _, client_id, _ = header
        api, session.api = served.get(key) or (None, session.api)
        if api is None or not api.low <= version <= api.high:
            _refuse(session, header, api)
            return
        if quotas.enabled:
            begin_request(quotas)
        if isinstance(api, HotApi):
            api.handle(broker, session, header, frame)
        else:
            request = read_request(header, frame)
            _handle(broker, _Call(api, header, session, request, session.api, broker))
        if quotas.lap_ns:
            end_request(broker, session, client_id)

    return dispatch


_BROKER_FAILED = ApiError(ErrorCode.unknown_server_error, "the broker failed; see its log")


def make_early_dispatch(broker: Broker, table: Mapping[int, Api]) -> Dispatch:
    """For a node that serves no clients yet: requests outside the table are too early."""
    dispatch = make_dispatch(broker, table)

    def dispatch_early(session: Session, frame: memoryview) -> None:
        if int.from_bytes(frame[:_API_KEY_BYTES], "big") in table:
            dispatch(session, frame)
        else:
            session.close("the node starts")

    return dispatch_early


class _Call(NamedTuple):
    api: ColdApi
    header: RequestHeader
    session: Session
    request: Any
    counted: ApiCounters
    broker: Broker

    def frame_of(self, outcome: object) -> bytes:
        """The frame of a response, or of the error that replaces it."""
        if isinstance(outcome, ApiError):
            return self._write(self.api.error_response(self.request, outcome))
        try:
            if isinstance(outcome, Exception):
                raise outcome
            return self._write(outcome)
        except Exception:
            logger.exception("%s of %s failed", self.api.name, self.session)
            return self._write(self.api.error_response(self.request, _BROKER_FAILED))

    def _write(self, response: object) -> bytes:
        count_errors(response, self.counted)
        header = self.header
        if self.broker.quotas.enabled:
            client_id = header.client_id
            response = throttled(self.broker, self.session, header.api_key, client_id, response)
        return write_response(header.api_key, header.api_version, header.correlation_id, response)


def _refuse(session: Session, header: RequestHeader, api: Api | None) -> None:
    if api is None:
        raise ProtocolError(f"API key {header.api_key} is not served")
    if api.key != API_VERSIONS_KEY:
        raise ProtocolError(
            f"version {header.api_version} of {api.name} is not served; "
            f"versions {api.low} to {api.high} are"
        )
    from ottla.handlers.api_versions import unsupported_version_response

    response = unsupported_version_response(api.low, api.high)
    session.send_now(write_response(api.key, 0, header.correlation_id, response))


def _handle(broker: Broker, call: _Call) -> None:
    session, header = call.session, call.header
    session.client_id = header.client_id
    if header.api_key in BETWEEN_BROKERS:
        if may_act_as_node(broker, session):
            session.receiver.become_peer()
        elif not may_abort_transactions(broker, session, header.api_key):
            session.send_now(call.frame_of(not_a_node(session)))
            return
    access = access_of(broker, session)
    context = RequestContext(
        header.api_version, header.client_id, session.listener_name, session, access
    )
    try:
        validate_on(broker, header.api_key)
        outcome = call.api.module.handle(broker, context, call.request)
    except ApiError as error:
        outcome = error.with_traceback(None)
    except Exception as error:
        outcome = error
    if isinstance(outcome, Future):
        reply = session.reply(call.api.overtakers)
        outcome.add_done_callback(
            lambda done: _answer(call, reply, done.exception() or done.result())
        )
    elif isinstance(outcome, CoroutineType):
        reply = session.reply(call.api.overtakers)
        broker.process.supervisor.start(call.api.name, _answer_later(call, reply, outcome))
    else:
        session.send_now(call.frame_of(outcome))


async def _answer_later(
    call: _Call, reply: Reply, response: Coroutine[object, object, object]
) -> None:
    try:
        outcome = await response
    except ApiError as error:
        outcome = error.with_traceback(None)
    except Exception as error:
        outcome = error
    _answer(call, reply, outcome)


def _answer(call: _Call, reply: Reply, outcome: object) -> None:
    try:
        frame = call.frame_of(outcome)
    except Exception:
        logger.exception("closing the connection of %s: it cannot be answered", call.session)
        call.session.close("its request cannot be answered")
    else:
        reply.send((frame,))
