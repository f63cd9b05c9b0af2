"""From `EmbeddedBroker()` to the first acknowledged record, as in a test's fixture.

The first start, which imports the broker, is reported separately.
"""

import statistics
import time

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report
from benchmarks.scenarios.startup import ask, create_error_position, create_topic_frame
from ottla.testing import EmbeddedBroker

TOPIC = "startup"


def main(*, rounds: int = 5) -> None:
    first, *others = [_start() for _ in range(1 + rounds)]
    report(first_seconds=first, seconds=statistics.median(others))


def _start() -> float:
    create, create_position = create_topic_frame(TOPIC), create_error_position(TOPIC)
    produce = frames.produce_frame(TOPIC, 0, frames.build_batch(1, 100), acks=-1)
    produce_position = frames.produce_response_error_position(TOPIC) - 4
    start = time.perf_counter()
    with EmbeddedBroker() as broker, frames.connect(broker.bootstrap_servers) as connection:
        for frame, position in ((create, create_position), (produce, produce_position)):
            error = ask(connection, frame, position)
            if error:
                raise frames.LoadError(f"error {error}")
        return time.perf_counter() - start


if __name__ == "__main__":
    cyclopts.run(main)
