"""Responses are matched in order; a peer that breaks the protocol is Unreachable."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from kio.schema.api_versions.v4.response import ApiVersion, ApiVersionsResponse
from kio.static.primitive import i16
from tests.client.async_wire.metadata import METADATA

from ottla.client.async_wire.connection import Connection
from ottla.client.wire.errors import Unreachable
from ottla.protocol.addresses import parse_servers
from ottla.protocol.codec import write_response
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE


def versions() -> bytes:
    keys = (ApiVersion(api_key=i16(3), min_version=i16(0), max_version=i16(99)),)
    response = ApiVersionsResponse(
        error_code=ErrorCode.none, api_keys=keys, throttle_time=NO_THROTTLE
    )
    return write_response(18, 0, 1, response)


def connect_to(bootstrap: str, timeout_s: float = 120) -> Awaitable[Connection]:
    ((host, port),) = parse_servers(bootstrap)
    return Connection.open(host, port, client_id="c", timeout_s=timeout_s)


def with_peer(
    test: Callable[[Connection], Awaitable[None]],
    *answers: bytes,
    timeout_s: float = 120,
    stays: bool = False,
) -> None:
    """Run the test with a connection to a peer that sends these bytes, one item per request."""

    answered = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for data in (versions(), *answers):
            with suppress(EOFError):  # More answers than requests.
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                await reader.readexactly(size)
                writer.write(data)
        if stays:
            await reader.read()
        writer.close()
        await writer.wait_closed()
        answered.set()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            host, port = server.sockets[0].getsockname()
            connection = await Connection.open(host, port, client_id="c", timeout_s=60)
            connection._timeout_s = timeout_s
            try:
                await test(connection)
            finally:
                connection.close()
                await answered.wait()

    asyncio.run(run())


def test_many_calls_at_once_get_their_own_answers(bootstrap: str) -> None:
    async def run() -> None:
        connection = await connect_to(bootstrap)
        answers = await asyncio.gather(*(connection.call(METADATA) for _ in range(2_500)))
        assert {answer.controller_id for answer in answers} == {answers[0].controller_id}
        assert answers[0].brokers
        connection.close()

    asyncio.run(run())


def test_a_cancelled_call_leaves_the_others_theirs(bootstrap: str) -> None:
    async def run() -> None:
        connection = await connect_to(bootstrap)
        calls = [asyncio.ensure_future(connection.call(METADATA)) for _ in range(10)]
        await asyncio.sleep(0)
        for call in calls[::2]:
            call.cancel()
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert [isinstance(result, asyncio.CancelledError) for result in results] == [
            True,
            False,
        ] * 5
        assert (await connection.call(METADATA)).brokers
        connection.close()

    asyncio.run(run())


def test_closing_tells_those_who_wait() -> None:
    async def closes(connection: Connection) -> None:
        call = asyncio.ensure_future(connection.call(METADATA))
        await asyncio.sleep(0)
        connection.close()
        with pytest.raises(Unreachable, match="closed"):
            await call
        with pytest.raises(Unreachable, match="closed"):
            await connection.call(METADATA)

    with_peer(closes, b"", stays=True)


def test_no_answer_in_time_closes_the_connection() -> None:
    async def waits(connection: Connection) -> None:
        with pytest.raises(Unreachable, match="in time"):
            await connection.call(METADATA, timeout_s=0.01)
        assert connection.closed

    with_peer(waits, b"", stays=True)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\x00\x00",
        struct.pack(">i", -5),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">i", 2) + b"ab",
        struct.pack(">ii", 8, 2) + bytes(4),
        struct.pack(">ii", 8, 77) + bytes(4),
    ],
)
def test_what_is_no_answer_is_unreachable(answer: bytes) -> None:
    async def calls(connection: Connection) -> None:
        with pytest.raises(Unreachable, match=connection.address):
            await connection.call(METADATA)
        assert connection.closed

    with_peer(calls, answer)


def test_versions_that_both_sides_know() -> None:
    async def asks(connection: Connection) -> None:
        assert connection.version(3) == connection.supports(3) == 13
        assert connection.supports(19) is None
        assert connection.supports(9_999) is None
        with pytest.raises(Unreachable, match="API 19"):
            connection.version(19)

    with_peer(asks)


def test_nobody_listens() -> None:
    async def run() -> None:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:1"):
            await connect_to("127.0.0.1:1")

    asyncio.run(run())
