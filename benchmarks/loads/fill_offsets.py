"""Fills one partition of __consumer_offsets with commits that compaction has to keep.

The groups have names with the same coordinator partition. Every commit is a request of its own, as
from consumers; the first one of each group is sent twice.
"""

import time
from collections.abc import Iterator
from itertools import count, islice

import cyclopts

from benchmarks.loads import frames
from benchmarks.loads.outcome import report
from benchmarks.loads.pipeline import Pipe
from benchmarks.loads.raw_commit import wait_until_accepted

OFFSETS_PARTITIONS = 50  # The default of offsets.topic.num.partitions.


def main(*, address: str, topic: str, partitions: int, groups: int) -> None:
    """Each group commits its number as the offset of each partition of the topic."""
    error_position = frames.commit_response_error_position(topic)
    names = list(islice(groups_of_one_coordinator(), groups))
    first = frames.commit_frame(names[0], topic, 0, 0)
    wait_until_accepted(address, names[0], first, error_position)
    start = time.perf_counter()
    with frames.connect(address) as connection:
        for group in names:
            requests = [frames.commit_frame(group, topic, n, n) for n in range(partitions)]
            _commit(Pipe(connection, requests, error_position))
    elapsed = time.perf_counter() - start
    commits = groups * partitions
    report(commits=commits, commits_per_second=commits / elapsed, seconds=elapsed)


def groups_of_one_coordinator() -> Iterator[str]:
    """Names of equal length, all in the coordinator partition of the first."""
    names = (f"group-{number:09d}" for number in count())
    first = next(names)
    yield first
    wanted = _coordinator_partition(first)
    yield from (name for name in names if _coordinator_partition(name) == wanted)


def _coordinator_partition(group: str) -> int:
    """Kafka takes the absolute value of Java's hash of the name."""
    code = 0
    for byte in group.encode():
        code = (31 * code + byte) & 0xFFFF_FFFF
    return min(code, (1 << 32) - code) % OFFSETS_PARTITIONS


def _commit(pipe: Pipe) -> None:
    pipe.fill()
    due = pipe.in_flight
    while due > 0:
        due -= pipe.drain_once()


if __name__ == "__main__":
    cyclopts.run(main)
