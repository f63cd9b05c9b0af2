"""Responses on their way to one socket, in order.

Parts are bytes or file ranges. A file range is not read before the socket can take it, so a slow
reader costs one chunk of memory however much it has requested.

A file reaches the socket in one of three ways:
- sendfile, when the socket is plain TCP, all that was sent before has left the transport, and the
  pages are in the page cache (sendfile would wait for the disk, and everyone with it);
- read from the page cache and written;
- read in a thread and written, when it is not in the page cache; what follows waits its turn.

Measured over loopback, processor time of the sender per part, sendfile against read and write:
16 KB 30 us and 11 us, 64 KB 10 us and 16 us, 256 KB 20 us and 42 us, 1 MB 58 us and 260 us.
"""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable

from ottla.network.file_part import FilePart, Part, ReadableFile, memory_size
from ottla.network.session_hub import Hub

SENDFILE_BYTES_MIN = 65_536
SENDFILE_BYTES_MAX = 1_048_576
READ_BYTES_MAX = 131_072
# A full socket is tried again in the next turns, because a nearby reader has taken some by then;
# a slow one fills it as often as a part has tries, and then the transport gets WAKE_BYTES, to
# notify when there is room. Between processes of one machine that is a tenth faster.
FULL_TRIES_MAX = 4
WAKE_BYTES = 8_192
GATHER_BYTES_MAX = 262_144
PUMP_BYTES_MAX = 1_048_576  # After this many bytes it is another session's turn.


def nothing(*_: object) -> None:
    pass


class Outbox:
    __slots__ = (
        "_cached_end",
        "_hub",
        "_on_failure",
        "_on_progress",
        "_reading",
        "_scheduled",
        "_sent",
        "_socket",
        "_transport",
        "_tries_left",
        "closed",
        "parts",
        "paused",
        "unsent_bytes",
    )

    def __init__(
        self,
        hub: Hub,
        transport: asyncio.Transport,
        plain_socket: socket.socket | None,
        on_progress: Callable[[], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self._hub = hub
        self._transport = transport
        self._socket = plain_socket  # None if bytes must go through the transport (TLS).
        self._on_progress = on_progress
        self._on_failure = on_failure
        self._sent = 0  # Sent bytes of the first file part.
        self._tries_left = FULL_TRIES_MAX  # Of the first file part.
        self._cached_end = 0  # Its file was found in the page cache up to here, in this turn.
        self._reading = False  # A thread is reading for the first file part.
        self._scheduled = False
        self.closed = False
        self.parts: deque[Part] = deque()
        self.paused = False  # The transport holds bytes that the socket did not take.
        self.unsent_bytes = 0  # Invariant: the memory size of `parts`.

    def put(self, parts: Iterable[Part], size: int) -> None:
        """`size` is their size in memory."""
        self.parts.extend(parts)
        self.unsent_bytes += size

    def pump(self) -> None:
        """Send until the socket is full, a thread must read, or others should have a turn."""
        turn = PUMP_BYTES_MAX
        self._cached_end = 0
        while self.parts and not (self.paused or self._reading or self.closed or self._scheduled):
            if turn <= 0:
                self._pump_later()
                return
            turn -= self._send_gathered() or self._send_file()

    def discard(self) -> None:
        self.closed = True
        self.parts.clear()
        self.unsent_bytes = 0
        self._on_progress = nothing
        self._on_failure = nothing

    def _pump_later(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._hub.loop.call_soon(self._pump_again)

    def _pump_again(self) -> None:
        self._scheduled = False
        self.pump()
        if not self.closed:
            self._on_progress()

    def _send_gathered(self) -> int:
        """Send the bytes at the head, including small file ranges, in one go."""
        gathered: list[bytes] = []
        size = 0
        while self.parts and size < GATHER_BYTES_MAX:
            part = self.parts[0]
            if isinstance(part, bytes):
                data = part
            else:
                small = self._read_small(part)
                if small is None:
                    break
                data = small
            self.parts.popleft()
            self.unsent_bytes -= memory_size(part)
            gathered.append(data)
            size += len(data)
        if size and not self.closed:
            self._hub.counters.bytes_out += size
            self._write(gathered[0] if len(gathered) == 1 else b"".join(gathered))
        return size

    def _write(self, data: bytes) -> None:
        if self.parts and self._socket is not None and not self.paused:
            rest = self._send_directly(self._socket, data)
            if rest:
                self._transport.write(rest)
        else:
            self._transport.write(data)

    def _send_directly(self, plain_socket: socket.socket, data: bytes) -> bytes | memoryview:
        """Bytes before a file go to the socket at once, since sendfile overtakes the transport."""
        try:
            sent = plain_socket.send(data, socket.MSG_MORE)
        except OSError:
            return data  # Full or broken; the transport deals with both.
        return memoryview(data)[sent:] if sent < len(data) else b""

    def _read_small(self, part: FilePart) -> bytes | None:
        if part.size >= SENDFILE_BYTES_MIN or self._sent:
            return None
        data = self._read_cached(part.file, part.position, part.size)
        return data if data is not None and len(data) == part.size else None

    def _send_file(self) -> int:
        part = self.parts[0] if self.parts and not self.closed else None
        if part is None or isinstance(part, bytes):
            return 0
        file, position, left = part.file, part.position + self._sent, part.size - self._sent
        size = min(left, READ_BYTES_MAX)
        if self._socket is not None and left >= SENDFILE_BYTES_MIN and not self.paused:
            sent = self._sendfile(self._socket, file, position, min(left, SENDFILE_BYTES_MAX))
            if sent:
                self._advance(sent, part.size)
                return sent
            if sent == 0:
                if self._tries_left:
                    self._tries_left -= 1
                    self._pump_later()
                    return 0
                size = WAKE_BYTES
        data = self._read_cached(file, position, size)
        if data is None:
            self._read_in_thread(file, position, size)
            return 0
        return self._deliver(data)

    def _sendfile(
        self, plain_socket: socket.socket, file: ReadableFile, position: int, size: int
    ) -> int | None:
        """Returns the bytes sent: 0 if the socket is full, None if it cannot be used here."""
        descriptor = file.fileno()
        if descriptor is None or not self._is_cached(file, position, size):
            return None
        try:
            sent = os.sendfile(plain_socket.fileno(), descriptor, position, size)
        except OSError:
            return 0  # Full or broken; the transport deals with both.
        self._hub.counters.bytes_out += sent
        self._hub.counters.bytes_sent_by_sendfile += sent
        return sent

    def _is_cached(self, file: ReadableFile, position: int, size: int) -> bool:
        """The kernel reads ahead from the front and drops from the front, so check both ends."""
        end = position + size
        if end <= self._cached_end:
            return True
        if not self._read_cached(file, position, 1) or not self._read_cached(file, end - 1, 1):
            return False
        self._cached_end = end
        return True

    def _read_cached(self, file: ReadableFile, position: int, size: int) -> bytes | None:
        try:
            return file.read_cached(position, size)
        except (OSError, ValueError) as error:
            self._fail(f"cannot read what was promised: {error}")
            return b""

    def _read_in_thread(self, file: ReadableFile, position: int, size: int) -> None:
        self._reading = True
        self._hub.counters.file_reads_in_thread += 1
        future = self._hub.loop.run_in_executor(self._hub.executor, file.read, position, size)
        future.add_done_callback(self._on_read)

    def _on_read(self, future: asyncio.Future[bytes]) -> None:
        self._reading = False
        error = None if future.cancelled() else future.exception()
        if self.closed:
            return
        if future.cancelled() or error is not None:
            self._fail(f"cannot read what was promised: {error}")
            return
        self._deliver(future.result())
        self.pump()
        if not self.closed:
            self._on_progress()

    def _deliver(self, data: bytes) -> int:
        if self.closed:
            return 0
        if not data:
            self._fail("a file ended before the bytes that were promised")
            return 0
        part = self.parts[0]
        assert not isinstance(part, bytes)
        self._hub.counters.bytes_out += len(data)
        self._advance(len(data), part.size)
        self._transport.write(data)
        return len(data)

    def _advance(self, sent: int, size: int) -> None:
        self._sent += sent
        if self._sent >= size:
            self._sent = self._cached_end = 0
            self._tries_left = FULL_TRIES_MAX
            self.unsent_bytes -= memory_size(self.parts.popleft())

    def _fail(self, reason: str) -> None:
        if not self.closed:
            self._on_failure(reason)
