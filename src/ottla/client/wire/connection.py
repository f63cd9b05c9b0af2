"""A connection to one broker; requests use the newest version both sides support."""

import select
import socket
import struct
from contextlib import suppress
from typing import Any, NamedTuple

from kio.schema.api_versions.v4.request import ApiVersionsRequest

from ottla.client.wire.errors import Unreachable, validate_answer
from ottla.client.wire.security import PLAINTEXT, Sasl, Security, authentication
from ottla.client.wire.versions import API_VERSIONS_VERSION, version_to_speak
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ProtocolError

FRAME_BYTES_MAX = 1 << 30

_SIZE = struct.Struct(">i")


class Sent(NamedTuple):
    """A request in flight; responses must be received in the order of their requests."""

    api_key: int
    api_version: int
    correlation_id: int


class Connection:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        client_id: str,
        timeout_s: float,
        connect_timeout_s: float | None = None,
        security: Security = PLAINTEXT,
    ) -> None:
        """`connect_timeout_s`, if given, applies to connecting and logging in."""
        self.address = f"{host}:{port}"
        self._client_id = client_id
        self._correlation_id = 0
        self._buffer = bytearray(1024)
        try:
            self._socket = socket.create_connection(
                (host, port), timeout=connect_timeout_s or timeout_s
            )
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = security.wrap(self._socket, host)
            self.versions = self._ask_versions()
            if security.sasl is not None:
                self._authenticate(security.sasl)
            self._socket.settimeout(timeout_s)
        except OSError as error:
            self.close()
            raise self._unreachable(error) from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def call(self, request: Any) -> Any:
        """Send a request and receive its response, both as entities of the newest version."""
        return self.receive(self.send(request))

    def send(self, request: Any, api_version: int | None = None) -> Sent:
        """Uses the newest version both sides support, unless `version` names another."""
        if api_version is None:
            api_version = self.version(request.__api_key__)
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        sent = Sent(request.__api_key__, api_version, self._correlation_id)
        try:
            self._socket.sendall(write_request(*sent, self._client_id, request))
        except OSError as error:
            raise self._unreachable(error) from None
        return sent

    def is_answered_within(self, seconds: float) -> bool:
        """Whether a response starts to arrive in time."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def receive(self, sent: Sent, *, in_place: bool = False) -> Any:
        """With `in_place`, records are views that stay valid until the next `receive`."""
        try:
            frame = self._receive_frame()
        except OSError as error:
            raise self._unreachable(error) from None
        try:
            correlation_id, response = read_response(
                sent.api_key, sent.api_version, frame, in_place=in_place
            )
        except ProtocolError as error:
            raise self._unreachable(error) from None
        if correlation_id != sent.correlation_id:
            raise self._unreachable(f"answer {correlation_id} to request {sent.correlation_id}")
        return response

    def version(self, api_key: int) -> int:
        """The newest version of the API that both sides support."""
        return version_to_speak(api_key, self.versions, self.address)

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        request = ApiVersionsRequest(client_software_name="ottla", client_software_version="")
        response = self.receive(self.send(request, API_VERSIONS_VERSION))
        validate_answer(response.error_code, f"{self.address} does not list its API versions")
        return {key.api_key: (key.min_version, key.max_version) for key in response.api_keys}

    def _authenticate(self, sasl: Sasl) -> None:
        conversation = authentication(sasl, self.address)
        request = next(conversation)
        with suppress(StopIteration):
            while True:
                request = conversation.send(self.call(request))

    def _receive_frame(self) -> memoryview:
        self._receive_into(memoryview(self._buffer)[: _SIZE.size])
        (size,) = _SIZE.unpack_from(self._buffer)
        if not 0 <= size <= FRAME_BYTES_MAX:
            raise ConnectionError(f"a frame of {size} bytes")
        if size > len(self._buffer):
            # A new buffer: views of the old one may still be in use.
            self._buffer = bytearray(size)
        frame = memoryview(self._buffer)[:size]
        self._receive_into(frame)
        return frame

    def _receive_into(self, target: memoryview) -> None:
        position = 0
        while position < len(target):
            count = self._socket.recv_into(target[position:])
            if not count:
                raise ConnectionResetError("it closed the connection")
            position += count

    def _unreachable(self, reason: object) -> Unreachable:
        return Unreachable(f"broker {self.address}: {reason}", reason)
