"""The ASGI application: one table of routes, and what all requests have in common.

Every request has an id, carried by its answer and the log. Its body is bounded unless its route
reads it as a stream (`bodies.read_stream`). Exceptions become problem details.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from starlette.requests import Request
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.client.wire.errors import WireError
from ottla.gateway.api import (
    admin,
    health,
    metrics,
    queues,
    records,
    simple,
    simple_queue,
    stream,
    subscriptions,
    websocket,
)
from ottla.gateway.api.bodies import STREAMS
from ottla.gateway.api.parameters import HEADERS
from ottla.gateway.aws_signatures import InvalidSignature
from ottla.gateway.core.errors import CoreError
from ottla.gateway.dialects import rest_v2, rest_v2_metadata, rest_v3
from ottla.gateway.dialects.sqs import routes as sqs
from ottla.gateway.identity import Users
from ottla.gateway.origins import is_foreign
from ottla.gateway.problems import Problem, problem_of
from ottla.gateway.route_table import RouteTable
from ottla.gateway.services import Services

logger = logging.getLogger("ottla.gateway")

Families = Sequence[Callable[[Services], Sequence[BaseRoute]]]

# Families of routes, in lookup order: the most frequently called first.
FAMILIES: Final[Families] = (
    records.routes,
    queues.routes,
    sqs.routes,
    simple.routes,
    simple_queue.routes,
    stream.routes,
    websocket.routes,
    subscriptions.routes,
    health.routes,
    metrics.routes,
    rest_v2_metadata.routes,
    admin.routes,
    rest_v2.routes,
    rest_v3.routes,
)

# Routes without authentication.
OPEN: Final = frozenset({"/health", "/ready"})

REQUEST_ID: Final = b"x-request-id"
_REQUEST_ID_BYTES_MAX: Final = 128


# Routes for operators, which can have a port of their own; health is for everyone.
ADMIN: Final[Families] = (health.routes, metrics.routes, admin.routes)
TRAFFIC: Final[Families] = tuple(
    family for family in FAMILIES if family is health.routes or family not in ADMIN
)


def build_app(
    services: Services, users: Users | None = None, families: Families = FAMILIES
) -> ASGIApp:
    """Without `users` everyone is the gateway's own user."""
    return _App(services, users, families)


class _App:
    def __init__(self, services: Services, users: Users | None, families: Families) -> None:
        self._own = services
        self._families = families
        self._users = users
        self._body_bytes_max = services.settings.body_bytes_max
        self._idle_s = services.settings.idle_s
        self._prefix = secrets.token_hex(6).encode() + b"-"
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        headers = scope[HEADERS] = dict(scope["headers"])
        request_id = self._request_id(headers)
        scope["request_id"] = request_id.decode("latin-1")
        if scope["type"] != "http":
            await self._answer_websocket(scope, receive, send)
            return
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (REQUEST_ID, request_id)]
            await send(message)

        try:
            if is_foreign(headers):
                raise Problem(403, "Pages of other sites may not call the gateway.")
            await self._answer(scope, self._bounded(scope, receive), send_with_id)
        except Exception as error:
            if started:
                logger.exception(
                    "request %s failed while sending its response", request_id.decode()
                )
                raise
            problem = problem_of(error)
            await problem.response()(scope, receive, send_with_id)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._users is None or scope["path"] in OPEN:
            await self._table(self._own).answer(scope, receive, send)
            return
        try:
            async with self._users.enter(Request(scope, receive)) as services:
                await self._table(services).answer(scope, receive, send)
        except InvalidSignature as error:
            refusal = sqs.refusal(scope[HEADERS], error.code, str(error))
            await refusal(scope, receive, send)

    async def _answer_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        counts = self._own.counts
        counts.websockets += 1
        try:
            await self._answer(scope, receive, send)
        except (Problem, CoreError, WireError) as error:  # Refused before acceptance.
            problem = problem_of(error)
            if "websocket.http.response" in scope.get("extensions", {}):
                await problem.response()(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": problem.detail})
        finally:
            counts.websockets -= 1

    def _table(self, services: Services) -> RouteTable:
        table = services.tables.get(self)
        if table is None:
            routes = [route for family in self._families for route in family(services)]
            table = services.tables[self] = RouteTable(routes, services.counts)
        return table

    def _request_id(self, headers: Mapping[bytes, bytes]) -> bytes:
        given = headers.get(REQUEST_ID)
        if given is not None and 0 < len(given) <= _REQUEST_ID_BYTES_MAX:
            return given
        return self._prefix + b"%x" % next(self._numbers)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        size = 0
        is_whole = False

        async def receive_bounded() -> Message:
            nonlocal size, is_whole
            if is_whole:  # The next message is the disconnect, whenever it comes.
                return await receive()
            message = await self._next(receive)
            if message["type"] == "http.request":
                is_whole = not message.get("more_body", False)
                size += len(message.get("body", b""))
                if size > self._body_bytes_max and not scope.get(STREAMS):
                    raise Problem(
                        413,
                        f"A body has at most {self._body_bytes_max} bytes.",
                        hint="Send less at once, or NDJSON, which is read as a stream.",
                        headers={"Connection": "close"},
                    )
            return message

        return receive_bounded

    async def _next(self, receive: Receive) -> Message:
        """Like `asyncio.timeout`, at a third of the cost: every request passes through here."""
        task = asyncio.current_task()
        assert task is not None
        is_late = False

        def give_up() -> None:
            nonlocal is_late
            is_late = True
            task.cancel()

        timer = asyncio.get_running_loop().call_later(self._idle_s, give_up)
        try:
            return await receive()
        except asyncio.CancelledError:
            if not is_late or task.uncancel():
                raise  # Cancelled by someone else.
            raise Problem(
                408,
                f"Nothing of the body came for {self._idle_s:g} seconds.",
                headers={"Connection": "close"},
            ) from None
        finally:
            timer.cancel()
