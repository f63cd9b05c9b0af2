"""A server on a free port of 127.0.0.1, and a client that controls every byte."""

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from typing import Any

from ottla.network.answers import Reply
from ottla.network.config import NetworkConfig
from ottla.network.endpoints import Endpoint
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.network.session_hub import Dispatch

Run = Callable[[Coroutine[Any, Any, Any]], Any]

LOOPBACK = Endpoint("PLAINTEXT", "127.0.0.1", 0)
ANYBODY = range(-(1 << 15), 1 << 15)  # Every API may overtake others.
TIMEOUT_S = 120  # For things that are instant on an idle machine.


def frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def echo(session: Session, body: memoryview) -> None:
    session.send_now(frame(bytes(body)))


class Answers:
    """Keeps the replies to its frames, to be sent when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Reply, bytes]] = []

    def __call__(self, session: Session, body: memoryview) -> None:
        self.waiting.append((session.reply(ANYBODY), bytes(body)))

    def send(self, index: int) -> None:
        reply, body = self.waiting.pop(index)
        reply.send([frame(body)])

    def send_all(self) -> None:
        while self.waiting:
            self.send(0)


@contextlib.asynccontextmanager
async def serving(
    dispatch: Dispatch = echo,
    *,
    monotonic_ms: Callable[[], float] = lambda: time.monotonic() * 1000,
    **config: Any,
) -> AsyncIterator[Server]:
    values = replace(NetworkConfig(), **{"listeners": (LOOPBACK,), **config})
    server = Server(values, dispatch, monotonic_ms=monotonic_ms)
    await server.bind()
    server.start()
    try:
        yield server
    finally:
        await server.stop(grace_s=0.0)


class Peer:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    def send_what_fits(self, data: bytes) -> int:
        """Send without waiting; returns how much was accepted."""
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < len(data):
                sent += self.socket.send(data[sent:])
        return sent

    async def receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            data = await self._loop.sock_recv(self.socket, size - len(received))
            if not data:
                raise EOFError(bytes(received))
            received += data
        return bytes(received)

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">I", await self.receive(4))
        return await self.receive(size)

    async def receive_to_end(self) -> bytes:
        """Everything until the server closes, cleanly or not."""
        received = bytearray()
        with contextlib.suppress(ConnectionResetError):
            while data := await self._loop.sock_recv(self.socket, 65_536):
                received += data
        return bytes(received)

    def close_half(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Abort the connection, like a crash."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def close(self) -> None:
        self.socket.close()


@contextlib.asynccontextmanager
async def peer_of(server: Server, *, receive_buffer: int = 0) -> AsyncIterator[Peer]:
    connected = socket.socket()
    connected.setblocking(False)
    if receive_buffer:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    endpoint = server.endpoints[0]
    try:
        loop = asyncio.get_running_loop()
        await loop.sock_connect(connected, (endpoint.host, endpoint.port))
        yield Peer(connected)
    finally:
        connected.close()


async def until_received(
    server: Server, *, bytes_in: int | None = None, frames: int | None = None
) -> None:
    counters = server.counters
    await until(lambda: bytes_in in (None, counters.bytes_in) and frames in (None, counters.frames))


async def until(condition: Callable[[], object]) -> None:
    """Run the event loop until the condition holds."""
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def session_of(server: Server) -> Session:
    """The one session that is open."""
    await until(lambda: len(server.sessions) == 1)
    (session,) = server.sessions
    return session
