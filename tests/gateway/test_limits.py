"""Limits of the application itself, without a socket."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.gateway.app import build_app
from ottla.gateway.services import Services
from ottla.gateway.settings import GatewaySettings

SCOPE = {
    "type": "http",
    "method": "POST",
    "path": "/publish",
    "raw_path": b"/publish",
    "root_path": "",
    "query_string": b"",
    "headers": [],
}


def ask(settings: GatewaySettings, receive: Callable[[], Awaitable[Any]]) -> tuple[int, Any]:
    """The status and the body of the response."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def run() -> None:
        services = Services(settings, settings.access())
        await build_app(services)(dict(SCOPE), receive, send)
        services.stopping.set()
        await services.close()

    asyncio.run(run())
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_a_body_that_stops_coming_is_given_up() -> None:
    pieces = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> Any:
        if pieces:
            return pieces.pop()
        return await asyncio.Event().wait()

    status, problem = ask(GatewaySettings("127.0.0.1:1", idle_s=0.05), receive)
    assert (status, problem["status"]) == (408, 408)


def test_a_body_that_does_not_end_is_given_up() -> None:
    async def receive() -> Any:
        return {"type": "http.request", "body": bytes(100), "more_body": True}

    status, _ = ask(GatewaySettings("127.0.0.1:1", body_bytes_max=10_000), receive)
    assert status == 413
