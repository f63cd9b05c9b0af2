"""Consumers of one group: they join one by one, then another one joins, then it leaves.

After each of the three, it measures the time until the group is stable: every partition
is with exactly one member, all members have the same number of them or one less, and every member
has polled since without a change. Members that join early get everything first and hand it on
later, so "everything is assigned" alone means little.
"""

import time
import uuid
from collections.abc import Callable
from statistics import fmean
from threading import Thread

import cyclopts
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from benchmarks.loads.frames import LoadError
from benchmarks.loads.outcome import report

STABLE_SECONDS_MAX = 120.0
JOIN_SECONDS = 0.05  # Between joins.
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
    times: int = 0,
    quiet_seconds: float = 0.5,
) -> None:
    """`heartbeat_ms` replaces the default of a classic member, or of a consumer group.

    `times` times, one more member joins `quiet_seconds` after the last change and leaves again.
    """
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": address,
        "group.id": f"rebalance-{uuid.uuid4()}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "latest",
    }
    if heartbeat_ms and protocol == "classic":
        settings["heartbeat.interval.ms"] = heartbeat_ms
    elif heartbeat_ms:
        _set_heartbeat_interval(address, str(settings["group.id"]), heartbeat_ms)
    consumers = [_connected(settings, topic) for _ in range(members + times)]
    group = Group(consumers[:members], partitions)
    outcome = {"join_seconds": group.time_until_stable(lambda: group.subscribe(topic))}
    if times:
        outcome |= _come_and_go(group, consumers[members:], topic, quiet_seconds)
    for consumer in consumers:
        consumer.close()
    report(members=members, partitions=partitions, **outcome)


def _connected(settings: dict[str, str | int | bool], topic: str) -> Consumer:
    consumer = Consumer(settings)
    consumer.list_topics(topic, timeout=120)
    return consumer


class Group:
    def __init__(self, consumers: list[Consumer], partitions: int) -> None:
        self.consumers = consumers
        self._partitions = partitions

    def subscribe(self, topic: str) -> None:
        """Members subscribe one after another; those that have are polled meanwhile."""
        for index, consumer in enumerate(self.consumers):
            consumer.subscribe([topic])
            if index + 1 < len(self.consumers):
                self.poll(JOIN_SECONDS)

    def poll(self, seconds: float) -> None:
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            self._polled()
            time.sleep(PAUSE_SECONDS)

    def time_until_stable(self, change: Callable[[], None]) -> float:
        start = time.perf_counter()
        change()
        before: Assignment = []
        while True:
            now = self._polled()
            if now == before and _is_balanced(now, self._partitions):
                return time.perf_counter() - start
            if time.perf_counter() > start + STABLE_SECONDS_MAX:
                counts = [len(owned) for owned in now]
                raise LoadError(f"not stable: members have {counts} partitions")
            before = now
            time.sleep(PAUSE_SECONDS)

    def _polled(self) -> Assignment:
        return [_polled(consumer) for consumer in self.consumers]


def _come_and_go(
    group: Group, newcomers: list[Consumer], topic: str, quiet_seconds: float
) -> dict[str, float]:
    """Mean times, because they depend on when heartbeats are due."""
    came, went = [], []
    for newcomer in newcomers:
        leaving = Thread(target=newcomer.close)  # Waits for the broker; the others need polls.

        def come(newcomer: Consumer = newcomer) -> None:
            group.consumers.append(newcomer)
            newcomer.subscribe([topic])

        def go(newcomer: Consumer = newcomer, leaving: Thread = leaving) -> None:
            group.consumers.remove(newcomer)
            leaving.start()

        group.poll(quiet_seconds)
        came.append(group.time_until_stable(come))
        group.poll(quiet_seconds)
        went.append(group.time_until_stable(go))
        leaving.join()
    return {"one_more_seconds": fmean(came), "one_less_seconds": fmean(went)}


def _set_heartbeat_interval(address: str, group_id: str, heartbeat_ms: int) -> None:
    name, operation = "consumer.heartbeat.interval.ms", AlterConfigOpType.SET
    entry = ConfigEntry(name, str(heartbeat_ms), incremental_operation=operation)
    resource = ConfigResource(ResourceType.GROUP, group_id, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": address})
    (altered,) = admin.incremental_alter_configs([resource]).values()
    altered.result(120)


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
