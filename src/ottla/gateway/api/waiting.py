"""Receiving for a client that may disconnect, without losing what was received for it.

The connection is watched while a request waits. A disconnect ends the wait, and what was received
goes back; so does what could not be sent because the client had disconnected by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ottla.gateway.core.queues import Delivery, Queues

T = TypeVar("T")

CLIENT_CLOSED_REQUEST = 499  # Seen only in the log.


class ClientGone(Exception):
    """The client disconnected while it waited."""


class Watch:
    """Knows whether a request's client is still connected. The body must have been read."""

    def __init__(self, request: Request) -> None:
        self._watching = asyncio.ensure_future(request.receive())

    @property
    def is_gone(self) -> bool:
        return self._watching.done()

    async def until_gone(self, work: Awaitable[T]) -> T:
        """The work's result; a disconnect cancels the work and raises ClientGone."""
        task = asyncio.current_task()
        assert task is not None
        ended = False

        def on_gone(_: "asyncio.Future[Any]") -> None:
            if not ended:
                task.cancel()

        self._watching.add_done_callback(on_gone)
        try:
            return await work
        except asyncio.CancelledError:
            if not self.is_gone or task.uncancel():
                raise  # Cancelled by someone else.
            raise ClientGone from None
        finally:
            ended = True

    def end(self) -> None:
        self._watching.cancel()


async def answer_while_connected(
    request: Request,
    queues: Queues,
    work: Awaitable[T],
    answer: Callable[[T], tuple[Response, Sequence[Delivery]]],
) -> Response:
    """`answer` makes the response to the work's result, with the deliveries that it holds."""
    watch = Watch(request)
    try:
        response, deliveries = answer(await watch.until_gone(work))
    except ClientGone:
        return Response(status_code=CLIENT_CLOSED_REQUEST)
    except BaseException:
        watch.end()
        raise
    return _DeliveryResponse(response, deliveries, queues, watch)


class _DeliveryResponse(Response):
    """A response with deliveries, which go back if it cannot be sent."""

    def __init__(
        self, response: Response, deliveries: Sequence[Delivery], queues: Queues, watch: Watch
    ) -> None:
        self.status_code = response.status_code
        self._response = response
        self._deliveries = deliveries
        self._queues = queues
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            if self._watch.is_gone:
                self._queues.put_back(self._deliveries)
            await self._response(scope, receive, send)
        finally:
            self._watch.end()
