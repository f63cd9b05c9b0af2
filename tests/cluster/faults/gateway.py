"""Gateways and brokers killed while clients publish, receive, acknowledge and delay over HTTP.

    python -m tests.cluster.faults.gateway --minutes 10

Three gateways serve three nodes; every few seconds one of the six is killed (SIGKILL) and
restarted. Clients use any gateway for any call. At the end everything that was acknowledged as
published must have been delivered and acknowledged, nothing may be redelivered after its
acknowledgement was confirmed, or delivered before its delay was over.
"""

import argparse
import itertools
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, Self

import httpx
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.faults.replicas import different_replicas
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.gateway.gateway_process import GatewayProcess

TOPIC: Final = "tasks"
GROUP: Final = "workers"
PARTITIONS: Final = 3
PUBLISHERS: Final = 3
CONSUMERS: Final = 6
BATCH: Final = 10
PUBLISH_PAUSE_S: Final = 0.01
QUEUE: Final = f"/queues/{TOPIC}/{GROUP}"
COUNT_TO_SETTLE: Final = 3  # A record delivered this often is acknowledged.
CLOCK_S: Final = 0.002  # Brokers count in milliseconds.
ANSWER_S: Final = 90.0
SETTLE_S: Final = 600.0
COUNT_LIMIT_KEY: Final = "group.share.delivery.count.limit"
COUNT_LIMIT: Final = 10  # More than one record's kills, releases and forgotten locks.


class Pace(NamedTuple):
    gateways: int = 3
    lock_s: float = 5.0
    delay_ms_max: int = 3_000


class Delivered(NamedTuple):
    name: str  # The message's name, chosen by its publisher.
    position: tuple[int, int]  # Partition and offset; a message that was sent twice has two.
    delivery_count: int
    handle: str

    @classmethod
    def of(cls, shown: dict[str, Any]) -> Self:
        position = shown["partition"], shown["offset"]
        return cls(shown["value"], position, shown["delivery_count"], shown["delivery"])


class Acked(NamedTuple):
    """A confirmed acknowledgement."""

    delivery_count: int
    at_s: float


@dataclass
class History:
    """What clients observed. Times are wall-clock times, like the brokers'."""

    published: set[str] = field(default_factory=set)
    deliver_at_s: dict[str, float] = field(default_factory=dict)  # Keyed by name.
    released_until_s: dict[tuple[int, int], float] = field(default_factory=dict)
    acked: dict[tuple[int, int], Acked] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)  # Names of what may be acknowledged.
    deliveries_count: int = 0
    delays_count: int = 0
    findings: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def missing(self) -> set[str]:
        with self.lock:
            return self.published - self.settled

    def on_published(self, name: str) -> None:
        with self.lock:
            self.published.add(name)

    def on_delayed(self, name: str, until_s: float) -> None:
        with self.lock:
            self.deliver_at_s[name] = until_s
            self.delays_count += 1

    def on_released(self, delivered: Delivered, until_s: float) -> None:
        with self.lock:
            self.released_until_s[delivered.position] = until_s
            self.delays_count += 1

    def on_delivered(self, delivered: Delivered, asked_s: float) -> None:
        now_s = time.time()
        name, position, count, _ = delivered
        with self.lock:
            self.deliveries_count += 1
            until_s = max(
                self.released_until_s.pop(position, 0.0), self.deliver_at_s.get(name, 0.0)
            )
            if until_s - now_s > CLOCK_S:
                self.findings.append(f"{name} came {until_s - now_s:.3f} s too early")
            acked = self.acked.get(position)
            # A late earlier delivery is fine.
            if acked is not None and (count > acked.delivery_count or asked_s > acked.at_s):
                self.findings.append(
                    f"{name} came again (delivery {count}), after the acknowledgement of delivery"
                    f" {acked.delivery_count} had been confirmed"
                )

    def on_acked(self, delivered: Delivered) -> None:
        with self.lock:
            self.acked[delivered.position] = Acked(delivered.delivery_count, time.time())

    def on_acking(self, done: Iterable[Delivered]) -> None:
        """With or without a confirmation, they may be acknowledged now."""
        with self.lock:
            self.settled |= {each.name for each in done}


class Client(threading.Thread):
    """Calls any gateway; after a failure, another one."""

    def __init__(self, name: str, gateways: list[GatewayProcess], seed: int, pace: Pace) -> None:
        super().__init__(name=name, daemon=True)
        self.pace = pace
        self.failure: BaseException | None = None
        self._random = Random(seed)
        self._clients = [httpx.Client(base_url=each.url, timeout=ANSWER_S) for each in gateways]
        self._ending = threading.Event()

    def end(self) -> None:
        self._ending.set()

    def run(self) -> None:
        try:
            while not self._ending.is_set():
                self.turn()
        except BaseException as error:
            self.failure = error
        finally:
            for client in self._clients:
                client.close()

    def turn(self) -> None:
        raise NotImplementedError

    def post(self, path: str, **options: Any) -> httpx.Response | None:
        """None if the outcome is unknown."""
        try:
            response = self._random.choice(self._clients).post(path, **options)
        except httpx.TransportError:
            time.sleep(0.05)
            return None
        if response.status_code in {429, 503}:
            time.sleep(0.05)
            return None
        assert response.status_code < 300, f"{path}: {response.status_code} {response.text}"
        return response


class Publisher(Client):
    def __init__(
        self,
        gateways: list[GatewayProcess],
        history: History,
        number: int,
        seed: int,
        pace: Pace,
    ) -> None:
        super().__init__(f"publisher {number}", gateways, seed, pace)
        self._history = history
        self._names: Iterator[str] = (f"{number}-{index}" for index in itertools.count())

    def turn(self) -> None:
        name = next(self._names)
        headers = {}
        if self._random.random() < 0.1:
            until_ms = int(time.time() * 1000) + self._random.randint(500, self.pace.delay_ms_max)
            headers = {"Deliver-At": str(until_ms)}
            self._history.on_delayed(name, until_ms / 1000)
        path = f"/topics/{TOPIC}/records?key={name}"
        if self.post(path, content=name.encode(), headers=headers) is not None:
            self._history.on_published(name)
        time.sleep(PUBLISH_PAUSE_S)


class Consumer(Client):
    def __init__(
        self,
        gateways: list[GatewayProcess],
        history: History,
        number: int,
        seed: int,
        pace: Pace,
    ) -> None:
        super().__init__(f"consumer {number}", gateways, seed, pace)
        self._history = history
        self.is_idle = False  # Its last receive returned nothing.
        self.draws_lots = True  # Whether it releases and forgets some records.

    def turn(self) -> None:
        asked_s = time.time()
        body = {"max": BATCH, "wait": 2, "lock": self.pace.lock_s}
        response = self.post(f"{QUEUE}:receive", json=body)
        if response is None:
            return
        done: list[Delivered] = []
        self.is_idle = not response.json()["deliveries"]
        for shown in response.json()["deliveries"]:
            delivered = Delivered.of(shown)
            self._history.on_delivered(delivered, asked_s)
            draws = self.draws_lots and delivered.delivery_count < COUNT_TO_SETTLE
            lot = self._random.random() if draws else 1.0
            if lot < 0.1:
                self._release(delivered)
            elif lot > 0.12:  # The others are forgotten: their locks expire.
                done.append(delivered)
        if done:
            self._acknowledge(done)

    def _release(self, delivered: Delivered) -> None:
        delay_s = self._random.uniform(0.1, self.pace.delay_ms_max / 1000)
        sent_s = time.time()
        body = {"deliveries": [delivered.handle], "delay": delay_s}
        response = self.post(f"{QUEUE}:nack", json=body)
        if response is not None and response.json()["results"][0]["status"] == "done":
            self._history.on_released(delivered, sent_s + delay_s)

    def _acknowledge(self, done: list[Delivered]) -> None:
        body = {"deliveries": [each.handle for each in done]}
        self._history.on_acking(done)
        response = self.post(f"{QUEUE}:ack", json=body)
        if response is None:
            return
        for delivered, result in zip(done, response.json()["results"], strict=True):
            if result["status"] == "done":
                self._history.on_acked(delivered)


class GatewayTrial:
    gateway_arguments: tuple[str, ...] = ()

    def __init__(
        self, directory: Path, seed: int, say: Callable[[str], None], pace: Pace | None = None
    ) -> None:
        self._pace = pace or Pace()
        self.history = History()
        self.kills: Counter[str] = Counter()
        self._directory = directory
        self._seed = seed
        self._random = Random(seed)
        self._say = say

    def run(self, seconds: float) -> list[str]:
        """Returns the findings."""
        with ExitStack() as stack:
            cluster = stack.enter_context(
                ClusterProcesses(self._directory, 3, "--set", f"{COUNT_LIMIT_KEY}={COUNT_LIMIT}")
            )
            cluster.wait_for_voters(1, 2, 3)
            create_topic(cluster.bootstrap)
            gateways = [
                stack.enter_context(
                    GatewayProcess(self._directory, cluster.bootstrap, *self.gateway_arguments)
                )
                for _ in range(self._pace.gateways)
            ]
            self._run(cluster, gateways, seconds)
            for gateway in gateways:
                gateway.stop()
            self.history.findings += different_replicas(cluster.data)
        return self.history.findings

    def _run(
        self, cluster: ClusterProcesses, gateways: list[GatewayProcess], seconds: float
    ) -> None:
        history = self.history
        publishers = [
            Publisher(gateways, history, number, self._seed + number, self._pace)
            for number in range(PUBLISHERS)
        ]
        consumers = [
            Consumer(gateways, history, number, self._seed + 100 + number, self._pace)
            for number in range(CONSUMERS)
        ]
        for client in (*publishers, *consumers):
            client.start()
        wait_until(lambda: bool(history.acked), "the first acknowledgement")
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            self._disturb(cluster, gateways)
        for publisher in publishers:
            publisher.end()
        for consumer in consumers:
            consumer.draws_lots = False
        self._settle(consumers)
        for client in (*publishers, *consumers):
            client.end()
        for client in (*publishers, *consumers):
            client.join(ANSWER_S)
            if client.failure is not None:
                history.findings.append(f"{client.name}: {client.failure!r}")
        history.findings += [f"{name} was lost" for name in sorted(history.missing)[:20]]

    def _disturb(self, cluster: ClusterProcesses, gateways: list[GatewayProcess]) -> None:
        time.sleep(self._random.uniform(0.2, 3.0))
        if self._random.random() < 0.5:
            number = self._random.randrange(len(gateways))
            self.kills["gateway"] += 1
            gateways[number].kill()
            time.sleep(self._random.uniform(0.0, 2.0))
            gateways[number].start()
        else:
            node_id = self._random.choice(cluster.ids)
            self.kills["broker"] += 1
            cluster.kill(node_id)
            time.sleep(self._random.uniform(0.0, 3.0))
            cluster.restart(node_id)
        self._say(self.summary())

    def _settle(self, consumers: list[Consumer]) -> None:
        """Waits until nothing is delivered: every lock and delay has ended."""
        pace = self._pace
        deadline_s = time.monotonic() + SETTLE_S
        quiet_s = time.monotonic()
        while time.monotonic() < deadline_s:
            if self.history.missing or not all(consumer.is_idle for consumer in consumers):
                quiet_s = time.monotonic()
            if time.monotonic() > quiet_s + pace.lock_s + pace.delay_ms_max / 1000:
                return
            if any(consumer.failure is not None for consumer in consumers):
                return
            time.sleep(0.1)

    def summary(self) -> str:
        history = self.history
        return (
            f"{self.kills['gateway']} gateways and {self.kills['broker']} brokers killed,"
            f" {len(history.published)} messages published, {history.deliveries_count} deliveries,"
            f" {history.delays_count} delays, {len(history.acked)} acknowledged,"
            f" {len(history.findings)} findings"
        )


def create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    config = {"min.insync.replicas": "2", "delivery.delay.enable": "true"}
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=config)])[TOPIC].result(ANSWER_S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="ottla-gateways-"))
    trial = GatewayTrial(directory, arguments.seed, lambda line: print(line, flush=True))
    findings = trial.run(arguments.minutes * 60)
    print(f"the logs are in {directory}")
    print(trial.summary())
    print("\n".join(findings) or "everything came, nothing came again, nothing came early")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
