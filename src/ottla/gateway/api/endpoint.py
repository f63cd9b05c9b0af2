"""A route's function as an ASGI application of its own.

Starlette wraps a function in its own handling of exceptions, for which `app` has the one place. On
routes that are called thousands of times a second that is a tenth of their cost.
"""

from collections.abc import Awaitable, Callable

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send


class Endpoint:
    def __init__(self, function: Callable[[Request], Awaitable[Response]]) -> None:
        self._function = function

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            response = await self._function(Request(scope, receive, send))
        except ClientDisconnect:
            return  # Before its body was there; nothing was done.
        await response(scope, receive, send)
