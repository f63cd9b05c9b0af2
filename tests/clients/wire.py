"""Requests that no client sends, using only kio, independent of Ottla's codec."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from tests.kits.raw_requests import read_response, request_frame, with_size

CLIENT_ID = "wire-test"
TIMEOUT_S = 150


class Wire:
    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), timeout=TIMEOUT_S)
        self._correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def call(self, request: Any) -> Any:
        """Send a kio entity and read the response of the same version."""
        self.send(request)
        return self.receive(request)

    def send(self, *requests: Any) -> None:
        """Sends all of them in one write."""
        self.send_bytes(b"".join(self._frame(request) for request in requests))

    def _frame(self, request: Any) -> bytes:
        self._correlation_id += 1
        return request_frame(request, self._correlation_id, CLIENT_ID)

    def receive(self, request: Any) -> Any:
        return read_response(request, self.receive_frame())

    def send_frame(self, body: bytes) -> None:
        self.send_bytes(with_size(body))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._receive(4))
        return self._receive(size)

    def close_half(self) -> None:
        """Close the sending side, like a client that is gone."""
        self._socket.shutdown(socket.SHUT_WR)

    def is_closed_by_peer(self) -> bool:
        """Wait until the broker closes the connection; returns bytes that it sent instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise EOFError(f"the broker closed the connection after {len(data)} bytes")
            data += chunk
        return bytes(data)
