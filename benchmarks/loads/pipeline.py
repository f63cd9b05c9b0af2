"""Keeps requests in flight over bare sockets, so that the broker and not the client is the limit.

Frames are built once. Each connection keeps a fixed number of requests in flight: every response
triggers one more request, gathered into one send. Only the sizes and error codes of responses are
checked, with strides over the whole buffer.
"""

import select
import socket
import struct
import time

from benchmarks.loads import frames

POLL_MS = 30_000
NO_COUNT = 1 << 62


class Pipe:
    """One connection with a constant number of requests in flight."""

    def __init__(
        self, connection: socket.socket, requests: list[bytes], error_position: int
    ) -> None:
        """All requests are in flight at once; they have one size, and so do the responses.

        `error_position` is the position of the error code in a response, counted from its size
        field.
        """
        self.connection = connection
        self.frame_size = len(requests[0])
        self.in_flight = len(requests)
        self.requests = memoryview(b"".join(requests))
        self.answers = bytearray(1 << 18)
        self.held = 0
        self.error_position = error_position
        self.answer_size = self._first_answer_size()

    def _first_answer_size(self) -> int:
        """The size of every response without an error: only fixed-width fields vary."""
        self.connection.sendall(self.requests[: self.frame_size])
        answer = frames.receive_response(self.connection)
        code = struct.unpack_from(">h", answer, self.error_position - 4)[0]
        if code:
            raise frames.LoadError(f"the request was refused with error {code}")
        return 4 + len(answer)

    def fill(self) -> None:
        self.connection.sendall(self.requests)

    def turn(self) -> int:
        """Waits for responses, sends as many requests, and returns how many."""
        count = self.drain_once()
        if count:
            self.connection.sendall(self.requests[: count * self.frame_size])
        return count

    def drain_once(self) -> int:
        received = self.connection.recv_into(memoryview(self.answers)[self.held :])
        if not received:
            raise frames.LoadError("the broker closed the connection")
        self.held += received
        count = self.held // self.answer_size
        if count:
            self._check(count)
            used = count * self.answer_size
            self.answers[: self.held - used] = self.answers[used : self.held]
            self.held -= used
        return count

    def _check(self, count: int) -> None:
        end, step = count * self.answer_size, self.answer_size
        sizes = self.answers[3:end:step].count(bytes([(step - 4) & 0xFF]))
        high = self.answers[self.error_position : end : step].count(0)
        low = self.answers[self.error_position + 1 : end : step].count(0)
        if not sizes == high == low == count:
            raise frames.LoadError("an answer carries an error")


class Generator:
    """Drives all pipes from one thread."""

    def __init__(self, pipes: list[Pipe]) -> None:
        self._pipes = {pipe.connection.fileno(): pipe for pipe in pipes}
        self._poll = select.poll()
        for descriptor in self._pipes:
            self._poll.register(descriptor, select.POLLIN)
        self._only = pipes[0] if len(pipes) == 1 else None

    def fill(self) -> None:
        for pipe in self._pipes.values():
            pipe.fill()

    def run(self, seconds: float, count_max: int) -> tuple[int, float]:
        """The number of answered requests, and the seconds they took."""
        clock, count = time.perf_counter, 0
        start = clock()
        end = start + seconds
        while (now := clock()) < end and count < count_max:
            if self._only is not None:
                count += self._only.turn()  # Waits in the receive itself.
            else:
                for descriptor, _ in self._poll.poll(POLL_MS):
                    count += self._pipes[descriptor].turn()
        return count, now - start

    def drain(self) -> int:
        """Waits for the outstanding responses; returns how many."""
        drained = 0
        for pipe in self._pipes.values():
            due = pipe.in_flight
            while due > 0:
                due -= pipe.drain_once()
            drained += pipe.in_flight
        return drained
