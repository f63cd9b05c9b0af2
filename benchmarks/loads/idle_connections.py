"""Opens connections, sends ApiVersions once on each, and holds them until stdin ends."""

import sys

import cyclopts

from benchmarks import processes
from benchmarks.loads import frames
from benchmarks.loads.outcome import report

API_VERSIONS = 18


def main(*, address: str, count: int = 5_000) -> None:
    processes.raise_open_files_limit()
    name, version = b"\x0abenchmark", b"\x021"
    request = frames.frame(API_VERSIONS, 3, name + version + b"\x00")
    connections = []
    for _ in range(count):
        connection = frames.connect(address)
        connection.sendall(request)
        frames.receive_response(connection)
        connections.append(connection)
    report(connections=len(connections))
    sys.stdin.read()


if __name__ == "__main__":
    cyclopts.run(main)
