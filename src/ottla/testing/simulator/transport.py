"""A TCP connection: two transports, and a pipe from each to the other.

Bytes arrive in the order in which they were written, in any pieces, after a while. If the network
loses them, they arrive once it works again, because TCP resends them; a connection whose other end
has died learns of it when that end's machine answers.
"""

import asyncio
import zlib
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network
    from ottla.testing.simulator.process import Process

WINDOW_BYTES = 65_536  # Of what was written, this much leaves the transport before it is read.
HIGH_WATER_BYTES = 65_536


class _End:
    """Of the stream of bytes."""

    def __init__(self, *, reset: bool) -> None:
        self.reset = reset


class SimulatedTransport(asyncio.Transport):
    pipe: "Pipe"  # To the other end.

    def __init__(
        self, process: "Process", address: tuple[str, int], peer_address: tuple[str, int]
    ) -> None:
        super().__init__()
        self.process = process
        self.address = address
        self.peer_address = peer_address
        self._protocol: asyncio.BaseProtocol | None = None
        self._received: deque[bytes | _End] = deque()
        self._reading = True
        self._delivering = False
        self._closing = False
        self._lost = False
        self._wrote_eof = False
        self._high = HIGH_WATER_BYTES
        self._low = HIGH_WATER_BYTES // 4
        self._writing_paused = False
        process.connections[self] = None

    def __repr__(self) -> str:
        return f"{self.address[0]}:{self.address[1]}->{self.peer_address[0]}:{self.peer_address[1]}"

    def attach(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol
        protocol.connection_made(self)
        self._deliver_later()

    # For the protocol.

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._lost or self._closing or not data:
            return
        self.pipe.send(bytes(data))
        self._maybe_pause_writing()

    def write_eof(self) -> None:
        if not self._wrote_eof:
            self._wrote_eof = True
            self.pipe.send(_End(reset=False))

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        if self._closing or self._lost:
            return
        self._closing = True
        unread, self._received = self._received, deque()
        if any(isinstance(item, bytes) for item in unread):
            self.pipe.send(_End(reset=True))  # As TCP does when what came is never read.
        else:
            self.write_eof()
        self._maybe_finish_closing()

    def abort(self) -> None:
        self._closing = True
        if not self._lost:
            self.pipe.send(_End(reset=True))
            self._lose(None)

    def is_closing(self) -> bool:
        return self._closing

    def get_write_buffer_size(self) -> int:
        return max(0, self.pipe.unread_bytes - WINDOW_BYTES)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER_BYTES if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._deliver_later()

    def is_reading(self) -> bool:
        return self._reading

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self.peer_address, "sockname": self.address}.get(name, default)

    # For the network.

    @property
    def is_open(self) -> bool:
        """Whether there is somebody at this end."""
        return self.process.alive and not self._lost

    def receive(self, item: bytes | _End) -> None:
        """From the network; the process takes it when it runs."""
        self._received.append(item)
        self._deliver_later()

    def on_read(self) -> None:
        """The other end has read some of what was written here."""
        if self.process.alive and (self._writing_paused or self._closing):
            self.process.call_soon(self._on_room)

    def reset(self) -> None:
        """The other end's machine says that there is no such connection."""
        if self.is_open:
            self._received.clear()
            self.receive(_End(reset=True))

    def on_process_death(self, *, machine_lives: bool) -> None:
        """The kernel ends the connections of a process; a machine without power says nothing."""
        if machine_lives:
            self.pipe.send(_End(reset=True))
        else:
            self.pipe.cut()

    def _maybe_pause_writing(self) -> None:
        if not self._writing_paused and self.get_write_buffer_size() > self._high:
            self._writing_paused = True
            assert self._protocol is not None
            self._protocol.pause_writing()

    def _on_room(self) -> None:
        if self._lost:
            return
        if self._writing_paused and self.get_write_buffer_size() <= self._low:
            self._writing_paused = False
            assert self._protocol is not None
            self._protocol.resume_writing()
        if self._closing:
            self._maybe_finish_closing()

    def _maybe_finish_closing(self) -> None:
        if not self.get_write_buffer_size():
            self._lose(None)

    def _lose(self, error: Exception | None) -> None:
        if self._lost:
            return
        self._lost = self._closing = True
        self._received.clear()
        self.process.connections.pop(self, None)
        self.process.call_soon(self._tell_lost, error)

    def _tell_lost(self, error: Exception | None) -> None:
        protocol, self._protocol = self._protocol, None
        if protocol is not None:
            protocol.connection_lost(error)

    def _deliver_later(self) -> None:
        if not self._delivering:
            self._delivering = True
            self.process.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._delivering = False
        while self._received and self._reading and self._protocol and not self._closing:
            item = self._received.popleft()
            if isinstance(item, _End):
                self._on_end(item)
            else:
                self._hand_over(item)
        if self._closing and self._received and not self._lost:
            self._after_closing()

    def _after_closing(self) -> None:
        """What still comes is thrown away; a reset ends it."""
        while self._received:
            item = self._received.popleft()
            if isinstance(item, _End):
                if item.reset:
                    self._lose(ConnectionResetError("reset by peer"))
            else:
                self.pipe.reverse.on_read(len(item))

    def _hand_over(self, data: bytes) -> None:
        protocol = self._protocol
        size = len(data)
        if isinstance(protocol, asyncio.BufferedProtocol):
            buffer = memoryview(protocol.get_buffer(-1))
            size = min(size, len(buffer))
            buffer[:size] = data[:size]
            if size < len(data):
                self._received.appendleft(data[size:])
            protocol.buffer_updated(size)
        else:
            assert isinstance(protocol, asyncio.Protocol)
            protocol.data_received(data)
        self.pipe.reverse.on_read(size)

    def _on_end(self, end: _End) -> None:
        if end.reset:
            self._lose(ConnectionResetError("reset by peer"))
            return
        assert isinstance(self._protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        if not self._protocol.eof_received():
            self.close()


class Pipe:
    """One way of a connection."""

    reverse: "Pipe"

    def __init__(
        self, network: "Network", source: SimulatedTransport, target: SimulatedTransport
    ) -> None:
        self.source = source
        self.target = target
        self.unread_bytes = 0  # Written here, and not yet read by the other end.
        self._network = network
        self._way = (source.process.host, target.process.host)
        self._last_arrival = 0.0
        self._is_cut = False
        self._lost: deque[bytes | _End] = deque()  # To be repeated when the network is well.

    def send(self, item: bytes | _End) -> None:
        if isinstance(item, bytes):
            self.unread_bytes += len(item)
            for piece in self._network.pieces(item):
                self._carry(piece)
        else:
            self._carry(item)

    def _carry(self, item: bytes | _End) -> None:
        arrival = self._network.arrival(*self._way)
        self._last_arrival = max(self._last_arrival, arrival)
        self._network.scheduler.call_at(self._last_arrival, lambda: self._arrive(item))

    def repeat_lost(self) -> None:
        """The network carries again what it lost."""
        lost, self._lost = self._lost, deque()
        for item in lost:
            self._carry(item)

    def cut(self) -> None:
        """The machine that sends is gone, and what the network has not carried yet with it."""
        self._lost.clear()
        self._is_cut = True

    def on_read(self, size: int) -> None:
        self.unread_bytes -= size
        self.source.on_read()

    def _arrive(self, item: bytes | _End) -> None:
        source_host, target_host = self._way
        if self._is_cut:
            return
        if self._lost or not self._network.is_open(source_host, target_host) or not target_host.up:
            self._lost.append(item)
            return
        if isinstance(item, bytes):
            self._network.scheduler.trace.mix(zlib.crc32(item).to_bytes(4, "big"))
        if self.target.is_open:
            self.target.receive(item)
        elif isinstance(item, bytes):
            self.reverse.answer_reset()

    def answer_reset(self) -> None:
        """From a machine that knows nothing of the connection."""
        network = self._network
        network.scheduler.call_at(network.arrival(*self._way), self._reset_target)

    def _reset_target(self) -> None:
        if self._network.is_open(*self._way):
            self.target.reset()
