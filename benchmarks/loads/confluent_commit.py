"""Commits with confluent-kafka, one commit at a time."""

import time

import cyclopts
from confluent_kafka import Consumer, TopicPartition

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report


def main(*, address: str, topic: str, seconds: float = 3.0, warm_seconds: float = 0.5) -> None:
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "benchmark", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0)])
    _commit(consumer, topic, 0.0)  # Wait until the coordinator is known and ready.
    _commit(consumer, topic, warm_seconds)
    start = time.perf_counter()
    commits = _commit(consumer, topic, seconds)
    elapsed = time.perf_counter() - start
    consumer.close()
    report(commits_per_second=commits / elapsed, commits=commits, seconds=elapsed)


def _commit(consumer: Consumer, topic: str, seconds: float) -> int:
    """Commits for `seconds`, at least once."""
    clock, commits = time.perf_counter, 0
    end = clock() + seconds
    while True:
        offsets = [TopicPartition(topic, 0, commits)]
        committed = consumer.commit(offsets=offsets, asynchronous=False)
        if committed is None or committed[0].error:
            raise LoadError(f"a commit was refused: {committed}")
        commits += 1
        if clock() >= end:
            return commits


if __name__ == "__main__":
    cyclopts.run(main)
