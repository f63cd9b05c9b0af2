"""The ASGI application: one table of routes, and what every request has in common.

Every request has an id, which its answer and the log carry. Its body is bounded unless its route
says that it reads a stream (`parameters.read_stream`). An exception becomes problem details.
"""

import asyncio
import itertools
import logging
import secrets
from collections.abc import Callable, Sequence
from typing import Final

from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ottla.gateway.api import (
    admin,
    health,
    queues,
    records,
    simple,
    simple_queue,
    stream,
    subscriptions,
    websocket,
)
from ottla.gateway.api.parameters import STREAMS
from ottla.gateway.dialects import rest_v2, rest_v3
from ottla.gateway.dialects.sqs import routes as sqs
from ottla.gateway.identity import identify
from ottla.gateway.origins import is_foreign
from ottla.gateway.problems import Problem, problem_of
from ottla.gateway.services import Services

logger = logging.getLogger("ottla.gateway")

# Families of routes, in the order in which they are looked at: those that are called often first.
FAMILIES: Final[Sequence[Callable[[Services], Sequence[BaseRoute]]]] = (
    records.routes,
    queues.routes,
    sqs.routes,
    simple.routes,
    simple_queue.routes,
    stream.routes,
    websocket.routes,
    subscriptions.routes,
    health.routes,
    admin.routes,
    rest_v2.routes,
    rest_v3.routes,
)

REQUEST_ID: Final = b"x-request-id"
_REQUEST_ID_BYTES_MAX: Final = 128


def build_app(services: Services) -> ASGIApp:
    return _App(services, build_routes(services))


def build_routes(services: Services) -> list[BaseRoute]:
    return [route for family in FAMILIES for route in family(services)]


class _App:
    def __init__(self, services: Services, routes: Sequence[BaseRoute]) -> None:
        self._body_bytes_max = services.settings.body_bytes_max
        self._idle_s = services.settings.idle_s
        self._router = Router(routes, redirect_slashes=False)
        self._prefix = secrets.token_hex(6).encode() + b"-"
        self._numbers = itertools.count(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        request_id = self._request_id(scope)
        scope["app"] = self  # Else the router itself answers what it does not find.
        scope["identity"] = identify(scope)
        scope["request_id"] = request_id.decode("latin-1")
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = [*message["headers"], (REQUEST_ID, request_id)]
            await send(message)

        try:
            if is_foreign(scope):
                raise Problem(403, "Pages of other sites may not call the gateway.")
            await self._router(scope, self._bounded(scope, receive), send_with_id)
        except Exception as error:
            if started:
                logger.exception("request %s failed while it was answered", request_id.decode())
                raise
            problem = problem_of(error)
            await problem.response()(scope, receive, send_with_id)

    def _request_id(self, scope: Scope) -> bytes:
        for name, value in scope["headers"]:
            if name == REQUEST_ID and 0 < len(value) <= _REQUEST_ID_BYTES_MAX:
                return bytes(value)
        return self._prefix + b"%x" % next(self._numbers)

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        size = 0
        is_whole = False

        async def receive_bounded() -> Message:
            nonlocal size, is_whole
            if is_whole:  # What comes now is that the client goes, whenever that is.
                return await receive()
            try:
                async with asyncio.timeout(self._idle_s):
                    message = await receive()
            except TimeoutError:
                raise Problem(
                    408,
                    f"Nothing of the body came for {self._idle_s:g} seconds.",
                    headers={"Connection": "close"},
                ) from None
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
