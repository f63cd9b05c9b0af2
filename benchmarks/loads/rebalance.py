"""Consumers that join a group at the same moment, until the group is stable.

Stable: every partition is with exactly one member, all members have the same number of them or one
less, and every member has polled since without a change. Members that join early get everything
first and hand it on later, so that "all is assigned" alone would say little.
"""

import time
import uuid

import cyclopts
from confluent_kafka import Consumer

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

STABLE_SECONDS_MAX = 120.0
PAUSE_SECONDS = 0.001
Assignment = list[frozenset[int]]


def main(
    *,
    address: str,
    topic: str,
    partitions: int,
    members: int = 10,
    protocol: str = "classic",
    heartbeat_ms: int = 0,
) -> None:
    """`heartbeat_ms` replaces the default of a classic member; others are told by the broker."""
    settings = {
        "bootstrap.servers": address,
        "group.id": f"rebalance-{uuid.uuid4()}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
    }
    if heartbeat_ms:
        settings["heartbeat.interval.ms"] = heartbeat_ms
    consumers = [Consumer(settings) for _ in range(members)]
    for consumer in consumers:
        consumer.list_topics(topic, timeout=30)
    start = time.perf_counter()
    for consumer in consumers:
        consumer.subscribe([topic])
    rounds = _wait_until_stable(consumers, partitions, start + STABLE_SECONDS_MAX)
    elapsed = time.perf_counter() - start
    for consumer in consumers:
        consumer.close()
    report(seconds=elapsed, members=members, partitions=partitions, polls=rounds * members)


def _wait_until_stable(consumers: list[Consumer], partitions: int, deadline: float) -> int:
    """How many times every member was polled until then."""
    before: Assignment = []
    rounds = 0
    while True:
        now = [_polled(consumer) for consumer in consumers]
        rounds += 1
        if now == before and _is_balanced(now, partitions):
            return rounds
        if time.perf_counter() > deadline:
            raise LoadError(f"not stable: members have {[len(owned) for owned in now]} partitions")
        before = now
        time.sleep(PAUSE_SECONDS)


def _polled(consumer: Consumer) -> frozenset[int]:
    message = consumer.poll(0)
    if message is not None and (error := message.error()) and error.fatal():
        raise LoadError(str(error))
    return frozenset(owned.partition for owned in consumer.assignment())


def _is_balanced(assignment: Assignment, partitions: int) -> bool:
    counts = [len(owned) for owned in assignment]
    whole = frozenset[int]().union(*assignment)
    return sum(counts) == len(whole) == partitions and max(counts) - min(counts) <= 1


if __name__ == "__main__":
    cyclopts.run(main)
