"""Connections to other nodes: requests go out, each gets its response or PeerUnreachable.

There is one connection for each address and purpose, opened by the first call and pipelined. A
response belongs to the oldest request that waits; one that comes too late, is not what the protocol
allows or belongs to another request ends the connection, and all calls on it fail. The next call
connects again at once: waiting between attempts is the caller's.
"""

import errno
import re
from asyncio import AbstractEventLoop, BaseTransport, BufferedProtocol, Future, TimerHandle
from asyncio import Transport as StreamTransport
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ProtocolError

RESPONSE_BYTES_MAX: Final = 1 << 28
_BUFFER_BYTES: Final = 1 << 16
_SIZE_BYTES: Final = 4
_CORRELATION_ID_BYTES: Final = 4
_CORRELATION_IDS: Final = 1 << 31
_ERROR_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")

BuildFrame = Callable[[int], bytes]  # From a correlation id to a whole frame, with its size.


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PeerUnreachable(ConnectionError):
    """No response will come; whether the peer acted on the request is unknown."""


class PeerRefused(PeerUnreachable):
    """Nobody listens at the address: the peer's process has ended, or is about to begin."""


class Peers:
    """It belongs to the loop's thread."""

    def __init__(self, loop: AbstractEventLoop, client_id: str) -> None:
        self.client_id = client_id
        self._loop = loop
        self._connections: dict[tuple[Address, str], _Connection] = {}
        self._closed = False

    async def call(
        self,
        address: Address,
        api_key: int,
        api_version: int,
        request: object,
        *,
        timeout_ms: float,
        purpose: str = "",
    ) -> Any:
        """`request` and the response are the newest entities of `protocol.codec`."""

        def build(correlation_id: int) -> bytes:
            return write_request(api_key, api_version, correlation_id, self.client_id, request)

        frame = await self.call_frame(address, build, purpose=purpose, timeout_ms=timeout_ms)
        try:
            return read_response(api_key, api_version, frame)[1]
        except ProtocolError as error:
            self.drop(address, purpose, str(error))
            raise PeerUnreachable(f"{address} sent a response that is wrong: {error}") from error

    async def call_frame(
        self, address: Address, build: BuildFrame, *, purpose: str, timeout_ms: float
    ) -> memoryview:
        """The frame of the response, without its size, from the correlation id on."""
        if self._closed:
            raise PeerUnreachable("the node stops")
        key = (address, purpose)
        connection = self._connections.get(key)
        if connection is None:
            connection = _Connection(self._loop, address, lambda lost: self._forget(key, lost))
            self._connections[key] = connection
        return await connection.send(build, timeout_ms)

    def drop(self, address: Address, purpose: str, reason: str) -> None:
        """End a connection whose peer did what it must not."""
        connection = self._connections.get((address, purpose))
        if connection is not None:
            connection.fail(reason)

    def close(self) -> None:
        self._closed = True
        for connection in list(self._connections.values()):
            connection.fail("the node stops")

    def _forget(self, key: tuple[Address, str], lost: "_Connection") -> None:
        if self._connections.get(key) is lost:
            del self._connections[key]


class _Waiting(NamedTuple):
    correlation_id: int
    response: "Future[memoryview]"
    timeout: TimerHandle


class _Connection(BufferedProtocol):
    def __init__(
        self,
        loop: AbstractEventLoop,
        address: Address,
        on_failed: Callable[["_Connection"], None],
    ) -> None:
        self._loop = loop
        self._address = address
        self._on_failed = on_failed
        self._transport: StreamTransport | None = None
        self._unsent: list[bytes] = []  # Until it is connected.
        self._waiting: deque[_Waiting] = deque()
        self._next_correlation_id = 1
        self._failed = False
        self._buffer = bytearray(_BUFFER_BYTES)
        self._received = 0  # Invariant: less than the buffer's size, which the next frame fits in.
        self._connecting = loop.create_task(self._connect())

    async def send(self, build: BuildFrame, timeout_ms: float) -> memoryview:
        correlation_id = self._next_correlation_id
        frame = build(correlation_id)
        self._next_correlation_id = (correlation_id + 1) % _CORRELATION_IDS
        response: Future[memoryview] = self._loop.create_future()
        late = f"did not answer within {timeout_ms:.0f} ms"
        timeout = self._loop.call_later(timeout_ms / 1000, self.fail, late)
        self._waiting.append(_Waiting(correlation_id, response, timeout))
        if self._transport is None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)
        return await response

    def fail(self, reason: str, error: type[PeerUnreachable] = PeerUnreachable) -> None:
        """Every call on the connection fails."""
        if self._failed:
            return
        self._failed = True
        self._on_failed(self)
        self._connecting.cancel()
        if self._transport is not None:
            self._transport.abort()
        for _, response, timeout in self._waiting:
            timeout.cancel()
            if not response.done():
                response.set_exception(error(f"{self._address} {reason}"))
        self._waiting.clear()

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: self, *self._address)
        except (OSError, ValueError) as error:
            kind = PeerRefused if _is_refusal(error) else PeerUnreachable
            self.fail(f"cannot be reached: {error}", kind)

    # The transport's calls.

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("StreamTransport", transport)
        if self._failed:
            self._transport.abort()
            return
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(f"closed the connection{f': {error}' if error else ''}")

    def get_buffer(self, _: int) -> memoryview:
        return memoryview(self._buffer)[self._received :]

    def buffer_updated(self, count: int) -> None:
        self._received += count
        position = 0
        needed = _SIZE_BYTES
        while not self._failed and self._received - position >= _SIZE_BYTES:
            size = int.from_bytes(self._buffer[position : position + _SIZE_BYTES], "big")
            if not _CORRELATION_ID_BYTES <= size <= RESPONSE_BYTES_MAX:
                self.fail(f"announced a response of {size} bytes")
                return
            needed = _SIZE_BYTES + size
            if self._received - position < needed:
                break
            self._on_response(self._take(position, needed))
            position += needed
            needed = _SIZE_BYTES
        self._make_room(position, needed)

    def _take(self, position: int, size: int) -> memoryview:
        """The buffer itself when the frame fills it, as large ones do; they are not copied."""
        if size == len(self._buffer) > _BUFFER_BYTES:
            return memoryview(self._buffer)[_SIZE_BYTES:]
        return memoryview(bytes(self._buffer[position + _SIZE_BYTES : position + size]))

    def _make_room(self, position: int, needed: int) -> None:
        """Put what comes after `position` at the start of a buffer that the next frame fits in."""
        size = max(needed, _BUFFER_BYTES)
        if position == 0 and size == len(self._buffer):
            return
        rest = self._buffer[position : self._received]
        if size != len(self._buffer):
            self._buffer = bytearray(size)
        self._buffer[: len(rest)] = rest
        self._received = len(rest)

    def _on_response(self, frame: memoryview) -> None:
        correlation_id = int.from_bytes(frame[:_CORRELATION_ID_BYTES], "big")
        if not self._waiting or self._waiting[0].correlation_id != correlation_id:
            self.fail(f"sent response {correlation_id}, which nobody waits for")
            return
        _, response, timeout = self._waiting.popleft()
        timeout.cancel()
        if not response.done():
            response.set_result(frame)


def _is_refusal(error: Exception) -> bool:
    """A name may have several addresses, whose errors come as one text."""
    numbers = set(_ERROR_NUMBERS.findall(str(error)))
    return isinstance(error, ConnectionRefusedError) or numbers == {str(errno.ECONNREFUSED)}
