"""Publishes to a JetStream over one bare socket with a constant number of messages in flight."""

import time

import cyclopts

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report
from benchmarks.peers import nats

LINES_PER_ANSWER = 2


def main(
    *,
    address: str,
    value_size: int = 100,
    in_flight: int = 50,
    warm_seconds: float = 0.5,
    seconds: float = 3.0,
) -> None:
    connection = nats.connect(address)
    message = nats.publication(nats.SUBJECT, bytes(value_size))
    messages = memoryview(message * in_flight)
    connection.sendall(messages)
    lines = count = 0
    start = time.perf_counter() + warm_seconds
    while (now := time.perf_counter()) < start + seconds:
        received = connection.recv(1 << 18)
        if not received or b'"error"' in received:
            raise LoadError("a message was refused")
        lines += received.count(b"\n")
        answers, lines = divmod(lines, LINES_PER_ANSWER)
        connection.sendall(messages[: answers * len(message)])
        if now >= start:
            count += answers
    report(requests_per_second=count / seconds, bytes=count * value_size)


if __name__ == "__main__":
    cyclopts.run(main)
