"""Calls to local servers, which are allowed unless a test says otherwise."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from ottla.gateway.core.addresses import parse_networks
from ottla.gateway.core.webhook_calls import (
    AddressRefused,
    Caller,
    CallFailed,
    WebhookAnswer,
    parse_url,
)

LOOPBACK = parse_networks(["127.0.0.0/8", "::1"])
HEADERS = {"webhook-id": "msg_1"}
STRANGERS_S = 5
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def call(
    handler: Handler, *, host: str = "127.0.0.1", caller: Caller | None = None
) -> WebhookAnswer:
    async def body() -> WebhookAnswer:
        serving: set[asyncio.Task[None]] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            try:
                await handler(reader, writer)
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        url = parse_url(f"http://{host}:{port}/hook?x=1")
        async with server:
            try:
                return await (caller or Caller(LOOPBACK)).post(url, HEADERS, b"body")
            finally:
                await end(serving)

    return asyncio.run(body())


async def end(serving: set["asyncio.Task[None]"]) -> None:
    """Clients of other tests may call, too: they retry a former broker's port."""
    if serving:
        _, strangers = await asyncio.wait(serving, timeout=STRANGERS_S)
        for task in strangers:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def answering(answer: bytes, seen: list[bytes] | None = None) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(4)
        if seen is not None:
            seen.append(request)
        writer.write(answer)

    return handler


def test_a_request_is_sent_and_its_status_is_read() -> None:
    seen: list[bytes] = []
    assert call(answering(OK, seen)) == WebhookAnswer(200)
    (request,) = seen
    assert request.startswith(b"POST /hook?x=1 HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\ncontent-length: 4\r\n" in request
    assert b"\r\nwebhook-id: msg_1\r\n" in request
    assert request.endswith(b"\r\n\r\nbody")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"HTTP/1.0 410 Gone\r\n\r\n", WebhookAnswer(410)),
        (b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", WebhookAnswer(302)),
        (b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\n\r\n", WebhookAnswer(503, 7)),
        (b"HTTP/1.1 503 Busy\r\nretry-after: Fri, 31 Dec 1999\r\n\r\n", WebhookAnswer(503)),
        (b"HTTP/1.1 503 Busy\r\nretry-after: 99999999999\r\n\r\n", WebhookAnswer(503, 86_400)),
        (b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, WebhookAnswer(200)),
    ],
)
def test_what_answers_mean(answer: bytes, expected: WebhookAnswer) -> None:
    assert call(answering(answer)) == expected


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"SSH-2.0\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 no\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 200 " + b"x" * 100_000, id="a head without end"),
    ],
)
def test_what_is_no_answer_is_a_failure(answer: bytes) -> None:
    with pytest.raises(CallFailed):
        call(answering(answer))


def test_a_silent_receiver_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.read()

    with pytest.raises(CallFailed, match=r"in 0\.2 s"):
        call(silent, caller=Caller(LOOPBACK, timeout_s=0.2))


def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.transport.is_closing():
            writer.write(b"x" * 65_536)
            await asyncio.sleep(0)

    assert call(endless) == WebhookAnswer(200)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"])
def test_addresses_that_are_near_are_refused(host: str) -> None:
    with pytest.raises(AddressRefused, match="--webhook-allow"):
        call(answering(OK), host=host, caller=Caller())


def test_the_address_that_was_checked_is_the_one_that_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name that resolves to a public address first and to a private one later reaches nothing."""
    lookups: list[str] = []

    async def rebinding(_: Any, host: str, port: int, **__: Any) -> list[Any]:
        lookups.append(host)
        address = "93.184.216.34" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    connected: list[str] = []

    async def connect(address: str, *_: Any, **__: Any) -> Any:
        connected.append(address)
        raise OSError("not from a test")

    monkeypatch.setattr(asyncio.base_events.BaseEventLoop, "getaddrinfo", rebinding)
    monkeypatch.setattr(asyncio, "open_connection", connect)
    with pytest.raises(CallFailed):
        asyncio.run(Caller().post(parse_url("http://rebinding.test/"), {}, b""))
    assert lookups == ["rebinding.test"]
    assert connected == ["93.184.216.34"]


@pytest.mark.parametrize(
    ("text", "authority", "target"),
    [
        ("https://example.com", "example.com", "/"),
        ("https://example.com:443/a?b=c", "example.com", "/a?b=c"),
        ("http://[2606:2800::1]:8080/x", "[2606:2800::1]:8080", "/x"),
    ],
)
def test_urls(text: str, authority: str, target: str) -> None:
    url = parse_url(text)
    assert (url.authority, url.target) == (authority, target)
