"""Connections to other nodes: each request gets its response or PeerUnreachable.

There is one connection per address and purpose, opened by the first call and pipelined. A response
belongs to the oldest waiting request; one that is late, violates the protocol or belongs to another
request ends the connection, and all calls on it fail.

A peer that does not answer is retried by the next call, after a wait that doubles with each attempt
up to a second. The call waits as well, which slows retries down. The wait ends at once when the
peer answers on another connection or is known to be back (`expect`). An absence is logged twice:
when it has lasted for a while, and when it is over.

A failed attempt leaves nothing behind: a frame in the traceback of an exception never references
that exception, so no attempt waits for the cycle collector, and only open connections have a
buffer.
"""

import errno
import logging
import re
from asyncio import AbstractEventLoop, BaseTransport, BufferedProtocol, Future, Task, TimerHandle
from asyncio import Transport as StreamTransport
from collections import deque
from collections.abc import Callable, Generator
from dataclasses import field
from ssl import SSLContext
from typing import Any, Final, NamedTuple, cast

from ottla.network.peer_login import PeerLogin
from ottla.protocol.addresses import Address
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ProtocolError
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.errors import AuthenticationFailed

logger = logging.getLogger(__name__)

RESPONSE_BYTES_MAX: Final = 1 << 28
BACKOFF_FIRST_S: Final = 0.02
BACKOFF_MAX_S: Final = 1.0
REPORTED_AFTER_S: Final = 3.0  # A restart takes less.
_BUFFER_BYTES: Final = 1 << 16
_SIZE_BYTES: Final = 4
_CORRELATION_ID_BYTES: Final = 4
_CORRELATION_IDS: Final = 1 << 31
_ERROR_NUMBERS: Final = re.compile(r"\[Errno (\d+)\]")

_Login = Generator[bytes, memoryview, None]  # See `peer_login`.
BuildFrame = Callable[[int], bytes]  # From a correlation id to a complete frame, with its size.


class PeerUnreachable(ConnectionError):
    """No response will come; whether the peer acted on the request is unknown."""


class PeerRefused(PeerUnreachable):
    """Nothing listens at the address: the peer's process has ended, or is about to start."""


class PeerSilent(PeerUnreachable):
    """The response has timed out."""


_Key = tuple[Address, str]  # With the purpose.


@dataclass(slots=True)
class _Absence:
    """The absence of a peer, since its first unanswered attempt."""

    since_s: float
    # By purpose: attempts, and when to retry.
    attempts: dict[str, tuple[int, float]] = field(default_factory=dict)
    attempts_count: int = 0
    is_refused: bool = False  # By the last attempt.
    reported: bool = False


class Peers:
    """Belongs to the loop's thread."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        client_id: str,
        random: Callable[[], float],
        tls: Callable[[], SSLContext] | None = None,
        login: PeerLogin | None = None,
    ) -> None:
        """`random` returns numbers from 0 to 1, for the waits; `tls` the context of the next
        connection, None if nodes use no TLS; `login` is this node's login, if nodes must log in."""
        self.client_id = client_id
        self._tls = tls
        self._login = None if login is None else lambda: login.frames(client_id)
        self._loop = loop
        self._random = random
        self._connections: dict[_Key, _Connection] = {}
        self._absences: dict[Address, _Absence] = {}
        self._closed = False

    async def call(
        self,
        address: Address,
        request: Any,
        *,
        timeout_ms: float,
        purpose: str = "",
        at_once: bool = False,
        version: int | None = None,
    ) -> Any:
        """`request` and the response are the newest entities of `protocol.codec`. They are sent in
        that version, unless another one is given.

        `at_once`: a peer that does not answer is retried without a wait, and its absence is not
        recorded. The caller handles the waits.
        """

        api_key = request.__api_key__
        api_version = request.__version__ if version is None else version

        def build(correlation_id: int) -> bytes:
            return write_request(api_key, api_version, correlation_id, self.client_id, request)

        frame = await self.call_frame(
            address, build, purpose=purpose, timeout_ms=timeout_ms, at_once=at_once
        )
        try:
            return read_response(api_key, api_version, frame)[1]
        except ProtocolError as error:
            self.drop(address, purpose, str(error))
            raise PeerUnreachable(f"{address} sent a response that is wrong: {error}") from error

    async def call_frame(
        self,
        address: Address,
        build: BuildFrame,
        *,
        purpose: str,
        timeout_ms: float,
        at_once: bool = False,
    ) -> memoryview:
        """The frame of the response, without its size, from the correlation id on."""
        if self._closed:
            raise PeerUnreachable("the node stops")
        key = (address, purpose)
        connection = self._connections.get(key)
        if connection is None:
            on_failed = self._forget if at_once else self._on_failed
            connection = _Connection(
                self._loop, key, self._tls, self._login, self._on_answered, on_failed
            )
            self._connections[key] = connection
            connection.open_in(0 if at_once else self._wait_s(key))
        return await connection.send(build, timeout_ms)

    def expect(self, address: Address) -> None:
        """The peer shows signs of life, so retry it without a wait."""
        if self._absences and (absence := self._absences.get(address)) is not None:
            absence.attempts.clear()
            self._open_waiting(address)

    def is_refused(self, address: Address) -> bool:
        """Whether nothing listened there at the last attempt: the peer's process has ended."""
        absence = self._absences.get(address)
        return absence is not None and absence.is_refused

    def is_connected(self, address: Address, purpose: str) -> bool:
        """Whether there is a connection, or one is being opened."""
        return (address, purpose) in self._connections

    def drop(self, address: Address, purpose: str, reason: str) -> None:
        """End a connection whose peer misbehaved, or that is not needed."""
        connection = self._connections.get((address, purpose))
        if connection is not None:
            connection.is_answered = True  # Whatever is wrong, it is not absent.
            connection.fail(reason)

    def close(self) -> None:
        self._closed = True
        for connection in list(self._connections.values()):
            connection.fail("the node stops")

    # Absences.

    def _wait_s(self, key: _Key) -> float:
        absence = self._absences.get(key[0])
        _, retry_at_s = (0, 0.0) if absence is None else absence.attempts.get(key[1], (0, 0.0))
        return max(0.0, retry_at_s - self._loop.time())

    def _open_waiting(self, address: Address) -> None:
        for (other, _), connection in list(self._connections.items()):
            if other == address:
                connection.open_now()

    def _on_answered(self, key: _Key) -> None:
        """Called for the first response on a connection."""
        absence = self._absences.pop(key[0], None)
        if absence is None:
            return
        self._open_waiting(key[0])
        if absence.reported:
            logger.info(
                "%s answers again after %.0f s and %d attempts",
                key[0],
                self._loop.time() - absence.since_s,
                absence.attempts_count,
            )

    def _forget(self, failed: "_Connection", _: str, __: type[PeerUnreachable]) -> None:
        if self._connections.get(failed.key) is failed:
            del self._connections[failed.key]

    def _on_failed(self, failed: "_Connection", reason: str, error: type[PeerUnreachable]) -> None:
        self._forget(failed, reason, error)
        address, purpose = failed.key
        if failed.is_answered or self._closed:
            return
        now_s = self._loop.time()
        absence = self._absences.get(address)
        if absence is None:
            absence = self._absences[address] = _Absence(now_s)
        count, _ = absence.attempts.get(purpose, (0, 0.0))
        longest_s = min(BACKOFF_FIRST_S * 2 ** min(count, 16), BACKOFF_MAX_S)
        absence.attempts[purpose] = (count + 1, now_s + longest_s * (1 + self._random()) / 2)
        absence.attempts_count += 1
        absence.is_refused = error is PeerRefused
        if not absence.reported and now_s - absence.since_s >= REPORTED_AFTER_S:
            absence.reported = True
            logger.warning(
                "%s %s; it has not answered for %.0f s, retrying until it does",
                address,
                reason,
                now_s - absence.since_s,
            )


class _Waiting(NamedTuple):
    correlation_id: int
    response: "Future[memoryview]"
    timeout: TimerHandle


class _Connection(BufferedProtocol):
    def __init__(
        self,
        loop: AbstractEventLoop,
        key: _Key,
        tls: Callable[[], SSLContext] | None,
        login: Callable[[], _Login] | None,
        on_answered: Callable[[_Key], None],
        on_failed: Callable[["_Connection", str, type[PeerUnreachable]], None],
    ) -> None:
        self.key = key
        self.is_answered = False  # Something was answered on this connection.
        self._loop = loop
        self._tls = tls
        self._new_login = login
        self._login: _Login | None = None  # While it logs in.
        self._on_answered = on_answered
        self._on_failed = on_failed
        self._opening: TimerHandle | Task[None] | None = None
        self._transport: StreamTransport | None = None
        self._unsent: list[bytes] = []  # Until it is connected, and logged in.
        self._waiting: deque[_Waiting] = deque()
        self._next_correlation_id = 1
        self._failed = False
        self._buffer = bytearray()  # While it is connected.
        self._received = 0  # Invariant: less than the buffer's size, which the next frame fits in.

    def open_in(self, wait_s: float) -> None:
        if wait_s:
            self._opening = self._loop.call_later(wait_s, self._open)
        else:
            self._open()

    def open_now(self) -> None:
        """If it is waiting to retry."""
        if isinstance(self._opening, Task) or self._opening is None:
            return
        self._opening.cancel()
        self._open()

    async def send(self, build: BuildFrame, timeout_ms: float) -> memoryview:
        correlation_id = self._next_correlation_id
        frame = build(correlation_id)
        self._next_correlation_id = (correlation_id + 1) % _CORRELATION_IDS
        response: Future[memoryview] = self._loop.create_future()
        timeout = self._loop.call_later(timeout_ms / 1000, self._on_late, timeout_ms)
        self._waiting.append(_Waiting(correlation_id, response, timeout))
        if self._transport is None or self._login is not None:
            self._unsent.append(frame)
        else:
            self._transport.write(frame)
        try:
            return await response
        finally:
            del response  # It holds the exception whose traceback references this frame.

    def fail(self, reason: str, error: type[PeerUnreachable] = PeerUnreachable) -> None:
        """Every call on the connection fails."""
        if self._failed:
            return
        self._failed = True
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        self._on_failed(self, reason, error)
        if self._transport is not None:
            self._transport.abort()
        for _, response, timeout in self._waiting:
            timeout.cancel()
            if not response.done():
                response.set_exception(error(f"{self.key[0]} {reason}"))
        self._waiting.clear()
        self._unsent.clear()

    def _on_late(self, timeout_ms: float) -> None:
        self.fail(f"did not answer within {timeout_ms:.0f} ms", PeerSilent)

    def _open(self) -> None:
        self._opening = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            host, port = self.key[0]
            if self._tls is None:
                await self._loop.create_connection(lambda: self, host, port)
            else:
                await self._loop.create_connection(
                    lambda: self, host, port, ssl=self._tls(), server_hostname=host
                )
        except (OSError, ValueError) as error:
            self._opening = None
            kind = PeerRefused if _is_refusal(error) else PeerUnreachable
            self.fail(f"cannot be reached: {error}", kind)
        self._opening = None

    # The transport's calls.

    def connection_made(self, transport: BaseTransport) -> None:
        self._transport = cast("StreamTransport", transport)
        if self._failed:
            self._transport.abort()
            return
        self._buffer = bytearray(_BUFFER_BYTES)
        if self._new_login is None:
            self._send_unsent()
        else:
            self._login = self._new_login()
            self._transport.write(next(self._login))

    def _send_unsent(self) -> None:
        assert self._transport is not None
        self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _log_in(self, login: _Login, frame: memoryview) -> None:
        """Continue the login with the response to its last message."""
        assert self._transport is not None
        try:
            self._transport.write(login.send(frame))
        except StopIteration:
            self._login = None
            self._send_unsent()
        except (AuthenticationFailed, ProtocolError) as error:
            self.fail(f"does not let this node log in: {error}")

    def connection_lost(self, error: Exception | None) -> None:
        self.fail(f"closed the connection{f': {error}' if error else ''}")
        self._transport = None
        self._buffer = bytearray()

    def get_buffer(self, _: int) -> memoryview:
        return memoryview(self._buffer)[self._received :]

    def buffer_updated(self, count: int) -> None:
        self._received += count
        position = 0
        needed = _SIZE_BYTES
        while not self._failed and self._received - position >= _SIZE_BYTES:
            size = int.from_bytes(self._buffer[position : position + _SIZE_BYTES], "big")
            if not _CORRELATION_ID_BYTES <= size <= RESPONSE_BYTES_MAX:
                self.fail(
                    f"does not speak the Kafka protocol: it announced a response of {size} bytes"
                )
                return
            needed = _SIZE_BYTES + size
            if self._received - position < needed:
                break
            self._on_response(self._take(position, needed))
            position += needed
            needed = _SIZE_BYTES
        self._make_room(position, needed)

    def _take(self, position: int, size: int) -> memoryview:
        """The buffer itself if the frame fills it, as large ones do; they are not copied."""
        if size == len(self._buffer) > _BUFFER_BYTES:
            return memoryview(self._buffer)[_SIZE_BYTES:]
        return memoryview(bytes(self._buffer[position + _SIZE_BYTES : position + size]))

    def _make_room(self, position: int, needed: int) -> None:
        """Move what follows `position` to the start of a buffer that fits the next frame."""
        size = max(needed, _BUFFER_BYTES)
        if position == 0 and size == len(self._buffer):
            return
        rest = self._buffer[position : self._received]
        if size != len(self._buffer):
            self._buffer = bytearray(size)
        self._buffer[: len(rest)] = rest
        self._received = len(rest)

    def _on_response(self, frame: memoryview) -> None:
        if self._login is not None:
            self._log_in(self._login, frame)
            return
        correlation_id = int.from_bytes(frame[:_CORRELATION_ID_BYTES], "big")
        if not self._waiting or self._waiting[0].correlation_id != correlation_id:
            self.fail(f"sent response {correlation_id}, which nobody waits for")
            return
        _, response, timeout = self._waiting.popleft()
        timeout.cancel()
        if not response.done():
            response.set_result(frame)
        if not self.is_answered:
            self.is_answered = True
            self._on_answered(self.key)


def _is_refusal(error: Exception) -> bool:
    """A name may have several addresses, whose errors come as one text."""
    numbers = set(_ERROR_NUMBERS.findall(str(error)))
    return isinstance(error, ConnectionRefusedError) or numbers == {str(errno.ECONNREFUSED)}
