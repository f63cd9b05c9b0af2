"""One pipelined connection to one broker: many requests in flight, responses in order.

A broker answers the requests on a connection in order, so a request that waits (Fetch, ShareFetch)
blocks those behind it: callers that wait use a connection of their own.

open -> call, call, ... -> closed    by close(), by the peer, by a call that timed out

A cancelled call's response is still read, and dropped. A call that times out closes the connection,
because the broker may still be working on what is behind it.
"""

import asyncio
import ssl
from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple, Self

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from ottla.client.wire.connection import FRAME_BYTES_MAX
from ottla.client.wire.errors import NotAuthenticated, Unreachable, validate_answer
from ottla.client.wire.security import PLAINTEXT, Sasl, Security, authentication
from ottla.client.wire.versions import (
    API_VERSIONS_VERSION,
    Versions,
    common_version,
    version_to_speak,
)
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ProtocolError

IN_FLIGHT_MAX = 1_000  # Unanswered requests; further calls wait for a slot.

_READ_BYTES_MAX = 1 << 20
_SIZE_BYTES = 4


class _Sent(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    answer: asyncio.Future[Any]


class Connection:
    """Created by `open`. Belongs to the loop that it was opened in."""

    def __init__(
        self,
        address: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client_id: str,
        timeout_s: float,
    ) -> None:
        self.address = address
        self.closed = False
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._correlation_id = 0
        self._sent: deque[_Sent] = deque()  # In the order of their responses.
        self._slots = asyncio.Semaphore(IN_FLIGHT_MAX)
        self._versions: Versions = {}
        self._reading = asyncio.ensure_future(self._read())

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_s: float,
        security: Security = PLAINTEXT,
    ) -> Self:
        """`timeout_s` applies to each step of opening, and is the default for calls."""
        address = f"{host}:{port}"
        tls = None if security.tls is None else security.tls.context()
        try:
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(
                    host, port, ssl=tls, limit=_READ_BYTES_MAX
                )
        except ssl.SSLCertVerificationError as error:
            raise NotAuthenticated(f"broker {host}: {error.verify_message}") from None
        except (OSError, TimeoutError) as error:
            raise Unreachable(f"broker {address}: {error or 'no answer in time'}") from None
        connection = cls(address, reader, writer, client_id, timeout_s)
        try:
            await connection._ask_versions()
            if security.sasl is not None:
                await connection._authenticate(security.sasl)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Unanswered calls raise Unreachable."""
        self._reading.cancel()
        self._break("the connection is closed")

    def version(self, api_key: int) -> int:
        """The newest API version that both sides support. Raises Unreachable if there is none."""
        return version_to_speak(api_key, self._versions, self.address)

    def supports(self, api_key: int) -> int | None:
        """The newest version that both sides support, if there is one."""
        try:
            return common_version(api_key, self._versions)
        except ProtocolError:  # This client does not know the API.
            return None

    async def call(self, request: Any, *, timeout_s: float | None = None) -> Any:
        """The newest version's response to the newest version's request."""
        return await self._call(request, self.version(request.__api_key__), timeout_s)

    async def send(self, request: Any) -> None:
        """For requests that brokers do not answer: a produce with acks=0."""
        if self.closed:
            raise Unreachable(f"broker {self.address}: the connection is closed")
        key = request.__api_key__
        self._writer.write(write_request(key, self.version(key), 0, self._client_id, request))
        await self._drain()

    async def _call(self, request: Any, api_version: int, timeout_s: float | None = None) -> Any:
        try:
            async with asyncio.timeout(self._timeout_s if timeout_s is None else timeout_s):
                await self._slots.acquire()
                answer = self._send(request, api_version)
                await self._drain()
                return await answer
        except TimeoutError:
            self._break("no answer in time")
            raise Unreachable(f"broker {self.address}: no answer in time") from None

    def _send(self, request: Any, api_version: int) -> asyncio.Future[Any]:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        answer = asyncio.get_running_loop().create_future()
        sent = _Sent(request.__api_key__, api_version, self._correlation_id, answer)
        try:
            if self.closed:
                raise Unreachable(f"broker {self.address}: the connection is closed")
            frame = write_request(*sent[:3], self._client_id, request)
        except BaseException:
            self._slots.release()
            raise
        self._sent.append(sent)
        self._writer.write(frame)
        return answer

    async def _drain(self) -> None:
        with suppress(OSError):  # Callers learn of it from the receiver.
            await self._writer.drain()

    async def _read(self) -> None:
        try:
            while True:
                head = await self._reader.readexactly(_SIZE_BYTES)
                size = int.from_bytes(head, "big", signed=True)
                if not 0 <= size <= FRAME_BYTES_MAX:
                    raise ProtocolError(f"a frame of {size} bytes")
                self._receive(memoryview(await self._reader.readexactly(size)))
        except EOFError:
            self._break("it closed the connection")
        except (OSError, ProtocolError) as error:
            self._break(str(error))
        finally:  # Whatever went wrong, callers must be told.
            self._break("an answer that cannot be read")

    def _receive(self, frame: memoryview) -> None:
        """Raises ProtocolError if it is not the response to the oldest request."""
        if not self._sent:
            raise ProtocolError("an answer to no request")
        sent = self._sent[0]
        correlation_id, response = read_response(
            sent.api_key, sent.api_version, frame, in_place=True
        )
        if correlation_id != sent.correlation_id:
            raise ProtocolError(f"answer {correlation_id} to request {sent.correlation_id}")
        self._sent.popleft()
        self._slots.release()
        if not sent.answer.done():
            sent.answer.set_result(response)

    def _break(self, reason: str) -> None:
        if self.closed:
            return
        self.closed = True
        self._writer.close()
        self._reading.cancel()
        while self._sent:
            answer = self._sent.popleft().answer
            self._slots.release()
            if not answer.done():
                answer.set_exception(Unreachable(f"broker {self.address}: {reason}"))

    async def _ask_versions(self) -> None:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version="")
        response = await self._call(request, API_VERSIONS_VERSION)
        validate_answer(response.error_code, f"{self.address} does not list its API versions")
        self._versions = {
            key.api_key: (key.min_version, key.max_version) for key in response.api_keys
        }

    async def _authenticate(self, sasl: Sasl) -> None:
        conversation = authentication(sasl, self.address)
        request = next(conversation)
        while True:
            response = await self.call(request)
            try:
                request = conversation.send(response)
            except StopIteration:
                return
