"""The sockets of the simulated network: listening ones, and those they accept.

An accepted one stands for its transport: whoever wants to write to it directly, past the transport,
finds it full.
"""

import errno
import socket
from collections import deque
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from ottla.testing.simulator.process import Process
    from ottla.testing.simulator.transport import SimulatedTransport


class SimulatedSocket:
    def __init__(
        self, process: "Process", family: int, transport: "SimulatedTransport | None" = None
    ) -> None:
        self.process = process
        self.transport = transport
        self.waiting: deque[SimulatedTransport] = deque()  # Connections that are not accepted yet.
        self.address = ("", 0)
        self._family = family
        self._descriptor = process.host.network.new_descriptor()

    def bind(self, address: tuple[str, int]) -> None:
        if self._family != socket.AF_INET:
            raise OSError(errno.EAFNOSUPPORT, "there is no IPv6 here")
        self.address = self.process.host.network.bind(self, *address)

    def listen(self, _backlog: int) -> None:
        self.process.listening[self] = None

    def accept(self) -> "tuple[socket.socket, tuple[str, int]]":
        if not self.waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        transport = self.waiting.popleft()
        accepted = SimulatedSocket(self.process, self._family, transport)
        return cast("socket.socket", accepted), transport.peer_address

    def send(self, _data: bytes, _flags: int = 0) -> int:
        raise BlockingIOError(errno.EAGAIN, "write to the transport")

    def recv(self, _size: int, _flags: int = 0) -> bytes:
        raise BlockingIOError(errno.EAGAIN, "read from the transport")

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def fileno(self) -> int:
        return self._descriptor

    def setblocking(self, _flag: bool) -> None:
        pass

    def setsockopt(self, *_: object) -> None:
        pass

    def close(self) -> None:
        if self.transport is not None:
            self.transport.abort()
            return
        self.process.listening.pop(self, None)
        self.process.host.network.unbind(self)
        while self.waiting:
            self.waiting.popleft().abort()
