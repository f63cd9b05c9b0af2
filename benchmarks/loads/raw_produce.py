"""Produces over bare sockets, so that the broker and not the client is the limit.

Frames are built once. Each connection keeps a fixed number of requests in flight: for every answer
that arrives one more request leaves, gathered into one send. Of the answers only the sizes and the
error codes are looked at, with strides over the whole buffer.
"""

import socket
import struct
import threading
import time

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report

SECONDS_MAX = 600.0


class Pipe:
    """One connection with a constant number of requests in flight."""

    def __init__(self, connection: socket.socket, frame: bytes, in_flight: int, topic: str) -> None:
        self.connection = connection
        self.frame_size = len(frame)
        self.in_flight = in_flight
        self.requests = memoryview(frame * in_flight)
        self.answers = bytearray(1 << 18)
        self.held = 0
        self.error_position = frames.produce_response_error_position(topic)
        self.answer_size = self._first_answer_size()

    def _first_answer_size(self) -> int:
        """The size that all answers without an error have: only fixed-width fields vary."""
        self.connection.sendall(self.requests[: self.frame_size])
        answer = frames.receive_response(self.connection)
        code = struct.unpack_from(">h", answer, self.error_position - 4)[0]
        if code:
            raise frames.LoadError(f"produce was refused with error {code}")
        return 4 + len(answer)

    def fill(self) -> None:
        self.connection.sendall(self.requests)

    def turn(self) -> int:
        """Waits for answers, sends as many requests, and tells how many there were."""
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


class Worker(threading.Thread):
    """Drives one pipe: warms up, measures, drains."""

    def __init__(self, pipe: Pipe, warm_seconds: float, seconds: float, count_max: int) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.warm_seconds = warm_seconds
        self.seconds = seconds
        self.count_max = count_max
        self.measured = self.answered = 0
        self.elapsed = 0.0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._drive()
        except Exception as error:  # The main thread raises it again.
            self.failure = error

    def _drive(self) -> None:
        pipe, clock = self.pipe, time.perf_counter
        pipe.fill()
        warm_end = clock() + self.warm_seconds
        while clock() < warm_end:
            self.answered += pipe.turn()
        count, count_max = 0, self.count_max or 1 << 62
        start = clock()
        end = start + self.seconds
        while (now := clock()) < end and count < count_max:
            count += pipe.turn()
        self.measured, self.elapsed = count, now - start
        self.answered += count + pipe.in_flight
        pending = pipe.in_flight
        while pending > 0:
            pending -= pipe.drain_once()


def main(
    *,
    address: str,
    topic: str,
    partitions: int = 1,
    connections: int = 1,
    in_flight: int = 50,
    records: int = 1,
    value_size: int = 100,
    acks: int = -1,
    seconds: float = 3.0,
    warm_seconds: float = 0.5,
    count: int = 0,
) -> None:
    """Sends for `seconds`, or until `count` requests were answered on each connection."""
    batch = frames.build_batch(records, value_size)
    workers = []
    for index in range(connections):
        frame = frames.produce_frame(topic, index % partitions, batch, acks)
        pipe = Pipe(frames.connect(address), frame, in_flight, topic)
        workers.append(Worker(pipe, warm_seconds, seconds, count))
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(SECONDS_MAX)
        if worker.failure:
            raise worker.failure
    rate = sum(worker.measured / worker.elapsed for worker in workers)
    report(
        requests_per_second=rate,
        megabytes_per_second=rate * records * value_size / 1e6,
        requests=sum(worker.measured for worker in workers),
        bytes=sum(worker.answered for worker in workers) * records * value_size,
        seconds=max(worker.elapsed for worker in workers),
    )


if __name__ == "__main__":
    cyclopts.run(main)
