"""Stalled connections that hold memory cost the others nothing, and are closed."""

import contextlib
import logging
import struct
from functools import partial

import pytest
from tests.network.peer import Peer, Run, echo, frame, peer_of, serving, session_of, until

from ottla.network.server import Server
from ottla.network.session import Session

MB = 1 << 20


class Clock:
    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms

    def pass_s(self, server: Server, seconds: int) -> None:
        """Checks the sessions every second."""
        for _ in range(seconds):
            self.now_ms += 1000
            server.close_stalled_sessions()


def announced(size: int) -> bytes:
    return struct.pack(">I", size)


async def send_what_is_taken(server: Server, peer: Peer, data: bytes, held: int) -> None:
    """Until the server holds that much, or stops reading."""
    sent = 0

    def is_taken() -> bool:
        nonlocal sent
        with contextlib.suppress(OSError):
            sent += peer.send_what_fits(data[sent:])
        return server.queued_bytes >= held

    await until(is_taken)


@pytest.mark.parametrize("count", [3, 40])
def test_announced_requests_that_stall_silence_nobody(run: Run, count: int) -> None:
    async def main() -> None:
        async with (
            serving(queued_bytes_max=8 * MB, request_bytes_max=4 * MB) as server,
            contextlib.AsyncExitStack() as stack,
        ):
            honest = await stack.enter_async_context(peer_of(server))
            stalled = [await stack.enter_async_context(peer_of(server)) for _ in range(count)]
            part = (7 * MB) // (count + 1)
            for number, peer in enumerate(stalled, 1):
                data = announced(4 * MB) + bytes(4 * MB - 1)
                await send_what_is_taken(server, peer, data, int(0.9 * part * number))
            assert server.queued_bytes <= 12 * MB
            for size in (10, 1_000, 50_000, part // 2):
                for _ in range(3):
                    await honest.send(frame(b"r" * size))
                    assert await honest.receive_frame() == b"r" * size
            assert server.counters.memory_waits > 0

    run(main())


def test_a_request_that_stops_half_way_is_given_up(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()

    async def main() -> None:
        async with serving(monotonic_ms=clock) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(announced(1_000) + b"half")
            await until(lambda: session.receiver.held_bytes)
            clock.pass_s(server, 59)
            assert not session.closed
            clock.pass_s(server, 3)
            await until(lambda: session.closed)
            assert await peer.receive_to_end() == b""
            assert server.counters.connections_closed_stalled == 1

    with caplog.at_level(logging.WARNING, "ottla.network"):
        run(main())
    assert "8 of 1004 bytes of a request have come" in caplog.text


def test_a_slow_but_steady_request_is_served(run: Run) -> None:
    clock = Clock()

    async def main() -> None:
        async with serving(monotonic_ms=clock) as server, peer_of(server) as peer:
            session = await session_of(server)

            def has_received(size: int) -> bool:
                return server.counters.bytes_in == size

            body = bytes(range(250)) * 1_200
            stream = frame(body)
            for position in range(0, len(stream), 1_100):
                end = min(position + 1_100, len(stream))
                await peer.send(stream[position:end])
                await until(partial(has_received, end))
                clock.pass_s(server, 1)
            assert not session.closed
            assert await peer.receive_frame() == body

    run(main())


def test_a_request_that_takes_for_ever_is_given_up(run: Run) -> None:
    clock = Clock()

    async def main() -> None:
        async with (
            serving(monotonic_ms=clock, receive_timeout_ms=20_000, receive_rate_min=0) as server,
            peer_of(server) as peer,
        ):
            session = await session_of(server)
            await peer.send(announced(1_000) + b"half")
            await until(lambda: session.receiver.held_bytes)
            clock.pass_s(server, 20)
            assert not session.closed
            clock.pass_s(server, 2)
            assert session.closed

    run(main())


def test_nobody_is_given_up_because_the_process_stood_still(run: Run) -> None:
    clock = Clock()

    async def main() -> None:
        async with serving(monotonic_ms=clock) as server, peer_of(server) as peer:
            session = await session_of(server)
            await peer.send(announced(1_000) + b"half")
            await until(lambda: session.receiver.held_bytes)
            clock.pass_s(server, 1)
            clock.now_ms += 3_600_000
            server.close_stalled_sessions()
            assert not session.closed

    run(main())


def test_a_request_that_waits_for_our_answers_is_not_given_up(run: Run) -> None:
    clock = Clock()

    def keep(session: Session, body: memoryview) -> None:
        session.reply()

    async def main() -> None:
        async with (
            serving(keep, monotonic_ms=clock, pending_requests_max=2) as server,
            peer_of(server) as peer,
        ):
            session = await session_of(server)
            await peer.send(frame(b"one") * 3)
            await until(lambda: session.receiver.paused)
            clock.pass_s(server, 1_000)
            assert not session.closed

    run(main())


@pytest.mark.parametrize("short", [False, True])
def test_unread_answers_are_given_up_only_when_memory_is_short(run: Run, short: bool) -> None:
    clock = Clock()

    def answer(session: Session, body: memoryview) -> None:
        session.send_now(bytes(300_000))

    async def main() -> None:
        limits = {"queued_bytes_max": 1_000_000 if short else 100 * MB, "send_buffer_bytes": 10_000}
        limits["unsent_bytes_max"] = MB
        async with (
            serving(answer, monotonic_ms=clock, **limits) as server,
            peer_of(server, receive_buffer=10_000) as peer,
        ):
            session = await session_of(server)
            peer.send_what_fits(frame(b"r") * 1_000)
            await until(lambda: session.receiver.paused)
            clock.pass_s(server, 10)
            assert session.closed == short

    run(main())


def test_a_closed_connection_whose_peer_does_not_read_ends(run: Run) -> None:
    clock = Clock()

    def answer(session: Session, body: memoryview) -> None:
        session.send_now(bytes(10 * MB))
        session.close("the test says so")

    async def main() -> None:
        async with serving(answer, monotonic_ms=clock) as server, peer_of(server) as peer:
            await peer.send(frame(b"r"))
            await until(lambda: any(session.closed for session in server.sessions))
            clock.pass_s(server, 62)
            await until(lambda: not server.sessions)

    run(main())


def test_a_shortage_is_logged_once_and_its_end(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()

    async def main() -> None:
        limits = {"queued_bytes_max": 8 * MB, "request_bytes_max": 4 * MB}
        async with serving(echo, monotonic_ms=clock, **limits) as server:
            async with contextlib.AsyncExitStack() as stack:
                for number in range(1, 4):
                    peer = await stack.enter_async_context(peer_of(server))
                    data = announced(4 * MB) + bytes(4 * MB - 1)
                    await send_what_is_taken(server, peer, data, int(1.5 * MB * number))
                await until(lambda: server.counters.memory_waits)
                clock.pass_s(server, 1)
            await until(lambda: not server.sessions)
            clock.pass_s(server, 1)

    with caplog.at_level(logging.INFO, "ottla.network"):
        run(main())
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "memory for requests is short" in line]) == 1
    assert lines[-1].startswith("memory for requests is sufficient again")


def test_brokers_are_read_on_when_clients_have_taken_everything(run: Run) -> None:
    def dispatch(session: Session, body: memoryview) -> None:
        if bytes(body[:4]) == b"peer":
            session.receiver.become_peer()
            session.send_now(frame(bytes(body)))
        else:
            session.reply()

    async def main() -> None:
        async with (
            serving(dispatch, queued_bytes_max=2 * MB, request_bytes_max=8 * MB) as server,
            peer_of(server) as client,
            peer_of(server) as broker,
        ):
            await broker.send(frame(b"peer"))
            assert await broker.receive_frame() == b"peer"
            await client.send(frame(b"client" * MB))
            await until(lambda: server.queued_bytes >= 6 * MB)
            for size in (10, 100_000, 200_000):
                await broker.send(frame(b"peer" + bytes(size)))
                assert await broker.receive_frame() == b"peer" + bytes(size)

    run(main())
