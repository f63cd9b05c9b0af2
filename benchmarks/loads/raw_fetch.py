"""Fetches over bare sockets, in order and whole batches, without decoding a record.

One connection per partition, one request in flight on each, as consumers do.
"""

import socket
import struct
import threading
import time

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report

SECONDS_MAX = 600.0


class Reader(threading.Thread):
    """Reads one partition from the start, again and again, until the time is over."""

    def __init__(self, address: str, topic: str, partition: int, size_max: int) -> None:
        super().__init__(daemon=True)
        self.connection = frames.connect(address)
        self.topic = topic
        self.request = bytearray(frames.fetch_frame(topic, partition, 0, size_max))
        marked = frames.fetch_frame(topic, partition, -2, size_max)
        self.offset_position = marked.index(struct.pack(">q", -2))
        self.buffer = memoryview(bytearray(size_max + (1 << 21)))
        self.end_offset = 0
        self.deadline = 0.0
        self.bytes = self.records = self.fetches = 0
        self.elapsed = 0.0
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self._read_until_deadline()
        except Exception as error:  # The main thread raises it again.
            self.failure = error

    def _read_until_deadline(self) -> None:
        clock, offset, start = time.perf_counter, 0, time.perf_counter()
        while (now := clock()) < self.deadline:
            next_offset, size, count = self.fetch(offset)
            offset = next_offset if size else 0
            self.bytes += size
            self.records += count
            self.fetches += 1
            if offset >= self.end_offset:
                offset = 0
        self.elapsed = now - start

    def fetch(self, offset: int) -> tuple[int, int, int]:
        struct.pack_into(">q", self.request, self.offset_position, offset)
        self.connection.sendall(self.request)
        size = struct.unpack(">i", self._receive(4))[0]
        return frames.walk_batches(frames.fetched_records(self._receive(size), self.topic))

    def _receive(self, size: int) -> memoryview:
        view = self.buffer[:size]
        received = 0
        while received < size:
            count = self.connection.recv_into(view[received:], 0, socket.MSG_WAITALL)
            if not count:
                raise frames.LoadError("the broker closed the connection")
            received += count
        return view


def main(
    *,
    address: str,
    topic: str,
    end_offset: int,
    partitions: int = 1,
    size_max: int = 1 << 20,
    seconds: float = 3.0,
) -> None:
    """Reads every partition, which holds the offsets below `end_offset`, for `seconds`."""
    readers = [Reader(address, topic, partition, size_max) for partition in range(partitions)]
    for reader in readers:
        reader.end_offset = end_offset
        reader.deadline = time.perf_counter() + seconds
        reader.start()
    for reader in readers:
        reader.join(SECONDS_MAX)
        if reader.failure:
            raise reader.failure
    report(
        megabytes_per_second=sum(reader.bytes / reader.elapsed for reader in readers) / 1e6,
        fetches_per_second=sum(reader.fetches / reader.elapsed for reader in readers),
        bytes=sum(reader.bytes for reader in readers),
        records=sum(reader.records for reader in readers),
    )


if __name__ == "__main__":
    cyclopts.run(main)
