"""HTTP connections that combine the writes of one event loop iteration.

uvicorn writes an answer's head and body separately, with a system call each. Combined they cost
half, and the client wakes up once.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_GATHERED_BYTES_MAX: Final = 64 * 1024  # Flush beyond this, for back-pressure.


class OneWriteProtocol(HttpToolsProtocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(Gathering(transport, self.loop))  # type: ignore[arg-type]


class Gathering:
    """A transport that buffers writes until the next loop iteration."""

    __slots__ = ("_gathered", "_loop", "_size", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._gathered: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        if not data:
            return
        if not self._gathered:
            self._loop.call_soon(self._flush)
        self._gathered.append(data)
        self._size += len(data)
        if self._size > _GATHERED_BYTES_MAX:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._gathered:
            gathered, self._gathered, self._size = self._gathered, [], 0
            self._transport.write(b"".join(gathered) if len(gathered) > 1 else gathered[0])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)
