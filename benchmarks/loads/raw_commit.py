"""Commits offsets of a group without members over bare sockets; see the pipeline for how."""

import struct

import cyclopts
from kio.schema.errors import ErrorCode

from benchmarks.loads import exchange, frames
from benchmarks.loads.outcome import report
from benchmarks.loads.pipeline import NO_COUNT, Generator, Pipe


def main(
    *,
    address: str,
    topic: str,
    group: str = "benchmark",
    partitions: int = 1,
    connections: int = 1,
    in_flight: int = 50,
    seconds: float = 3.0,
    warm_seconds: float = 0.5,
    count: int = 0,
) -> None:
    """Commits for `seconds`, or until `count` requests, of one partition each, were answered."""
    error_position = frames.commit_response_error_position(topic)
    requests = [
        frames.commit_frame(group, topic, index % partitions, index) for index in range(in_flight)
    ]
    wait_until_accepted(address, group, requests[0], error_position)
    pipes = [Pipe(frames.connect(address), requests, error_position) for _ in range(connections)]
    generator = Generator(pipes)
    generator.fill()
    warmed, _ = generator.run(warm_seconds, NO_COUNT)
    measured, elapsed = generator.run(seconds, count or NO_COUNT)
    answered = warmed + measured + generator.drain()
    report(
        commits_per_second=measured / elapsed,
        commits=measured,
        commits_answered=answered,
        seconds=elapsed,
    )


def wait_until_accepted(address: str, group: str, request: bytes, error_position: int) -> None:
    """Returns once the group's coordinator has accepted the commit."""
    with frames.connect(address) as connection:
        exchange.wait_for_coordinator(connection, group)

        def committed() -> ErrorCode:
            connection.sendall(request)
            answer = frames.receive_response(connection)
            return ErrorCode(struct.unpack_from(">h", answer, error_position - 4)[0])

        exchange.wait_until_ready(committed)


if __name__ == "__main__":
    cyclopts.run(main)
