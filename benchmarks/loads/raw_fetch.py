"""Fetches a partition over a bare socket, in order and whole batches, without decoding a record.

One request is in flight, as consumers do.
"""

import socket
import struct
import time

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report


class Reader:
    def __init__(self, address: str, topic: str, size_max: int) -> None:
        self.connection = frames.connect(address)
        self.topic = topic
        self.request = bytearray(frames.fetch_frame(topic, 0, 0, size_max))
        marked = frames.fetch_frame(topic, 0, -2, size_max)
        self.offset_position = marked.index(struct.pack(">q", -2))
        self.buffer = memoryview(bytearray(size_max + (1 << 21)))

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
    *, address: str, topic: str, end_offset: int, size_max: int = 1 << 20, seconds: float = 3.0
) -> None:
    """Reads the offsets below `end_offset` of partition 0, at least once, and for `seconds`."""
    reader = Reader(address, topic, size_max)
    offset = total = records = fetches = 0
    start = time.perf_counter()
    while (now := time.perf_counter()) < start + seconds or records < end_offset:
        next_offset, size, count = reader.fetch(offset)
        offset = next_offset if size and next_offset < end_offset else 0
        total += size
        records += count
        fetches += 1
    report(
        megabytes_per_second=total / (now - start) / 1e6,
        fetches_per_second=fetches / (now - start),
        bytes=total,
        records=records,
    )


if __name__ == "__main__":
    cyclopts.run(main)
