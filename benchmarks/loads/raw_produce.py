"""Produces over bare sockets; see the pipeline for how."""

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report
from benchmarks.loads.pipeline import NO_COUNT, Generator, Pipe
from benchmarks.loads.tls import connect


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
    authority: str = "",
) -> None:
    """Sends for `seconds`, or until `count` requests were answered; with `authority` over TLS."""
    batch = frames.build_batch(records, value_size)
    pipes = []
    for index in range(connections):
        frame = frames.produce_frame(topic, index % partitions, batch, acks)
        error_position = frames.produce_response_error_position(topic)
        pipes.append(Pipe(connect(address, authority), [frame] * in_flight, error_position))
    generator = Generator(pipes)
    generator.fill()
    warmed, _ = generator.run(warm_seconds, NO_COUNT)
    measured, elapsed = generator.run(seconds, count or NO_COUNT)
    answered = warmed + measured + generator.drain()
    report(
        requests_per_second=measured / elapsed,
        megabytes_per_second=measured * records * value_size / elapsed / 1e6,
        requests=measured,
        bytes=answered * records * value_size,
        seconds=elapsed,
    )


if __name__ == "__main__":
    cyclopts.run(main)
