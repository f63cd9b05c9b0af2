"""One run: a cluster, its clients, what goes wrong, and what is checked.

First the cluster starts and topics are made. Then clients work while faults happen. At last faults
end, everything must become well, clients finish, and all that is there is read and checked.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from ottla.network.peers import Address
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.checkers.all import all_checkers
from ottla.testing.simulator.checkers.checker import Checker, FinalState, History
from ottla.testing.simulator.clients.admin import create_topic
from ottla.testing.simulator.clients.client import Client
from ottla.testing.simulator.clients.producer import Producer
from ottla.testing.simulator.clients.reader import Fetcher, Reader
from ottla.testing.simulator.events import ReadRecord
from ottla.testing.simulator.faults import FAULTS, Faults
from ottla.testing.simulator.host import Host
from ottla.testing.simulator.log_lines import traced_logging
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.profile import Profile, draw_profile
from ottla.testing.simulator.scheduler import Scheduler
from ottla.testing.simulator.simulated_node import PORT, SimulatedNode
from ottla.testing.simulator.trace import Trace
from ottla.testing.simulator.violation import Stalled

TOPIC = "orders"
START_S_MAX = 30.0
FINISH_S_MAX = 120.0
LOOK_INTERVAL_S = 0.05
OVERRIDES = {
    "offsets.topic.num.partitions": "2",
    "transaction.state.log.num.partitions": "2",
    "log.segment.bytes": "20000",
    "log.flush.offset.checkpoint.interval.ms": "5000",
}


class Cluster:
    def __init__(
        self,
        seed: int,
        profile: Profile | None = None,
        checkers: Sequence[Checker] | None = None,
    ) -> None:
        self.scheduler = Scheduler(seed)
        self.profile = profile or draw_profile(self.scheduler.chance("profile"), FAULTS)
        self.checkers = all_checkers() if checkers is None else list(checkers)
        self.network = Network(self.scheduler)
        self.nodes = [
            SimulatedNode(self.network, number, OVERRIDES)
            for number in range(1, self.profile.nodes_count + 1)
        ]
        self.partitions = [
            TopicPartition(TOPIC, index) for index in range(self.profile.partitions_count)
        ]
        self._history = History(self.checkers)
        self._clients: list[Client] = []
        self._working: dict[asyncio.Task[None], str] = {}  # What clients are at.

    @property
    def trace(self) -> Trace:
        return self.scheduler.trace

    def run(self) -> None:
        """Raises Violation, Stalled, or what the simulated code raised."""
        with traced_logging(self.scheduler):
            try:
                self._run()
            except BaseException as error:
                self.scheduler.fail(error)
                raise
            finally:
                self._dispose()

    def _run(self) -> None:
        self.scheduler.tell("simulator", str(self.profile))
        for node in self.nodes:
            node.start()
        self._wait(lambda: all(node.serving for node in self.nodes), START_S_MAX, "start")
        admin = self._new_client("admin")
        self._work(
            admin,
            create_topic(
                admin,
                TOPIC,
                partitions_count=self.profile.partitions_count,
                replication_factor=min(3, self.profile.nodes_count),
            ),
        )
        self._finish(START_S_MAX, "create the topic")
        self._start_clients()
        faults = self._start_faults()
        self._look()
        self.scheduler.run_until(self.scheduler.now + self.profile.duration_s)
        faults.stop()
        self._wait(lambda: all(node.serving for node in self.nodes), FINISH_S_MAX, "serve again")
        for client in self._clients:
            client.stopping = True
        self._finish(FINISH_S_MAX, "finish")
        final = FinalState(self._read_all())
        for checker in self.checkers:
            checker.check_end(final)

    # Clients.

    def _new_client(self, name: str) -> Client:
        host = Host(name, self.network)
        host.start_process()
        client = Client(host, [Address(node.host.name, PORT) for node in self.nodes])
        self._clients.append(client)
        return client

    def _work(self, client: Client, work: Coroutine[Any, Any, None]) -> None:
        task = client.process.create_task(work)
        self._working[task] = client.name
        task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        del self._working[task]
        if (error := task.exception()) is not None:
            self.scheduler.fail(error)

    def _start_clients(self) -> None:
        profile, history = self.profile, self._history
        producers = [True] * profile.idempotent_producers_count
        producers += [False] * profile.plain_producers_count
        for number, idempotent in enumerate(producers):
            client = self._new_client(f"producer-{number}")
            for partition in self.partitions:
                producer = Producer(
                    client, history, partition, idempotent=idempotent, pause_s=profile.pause_s
                )
                self._work(client, producer.run())
        for number in range(profile.readers_count):
            client = self._new_client(f"reader-{number}")
            for partition in self.partitions:
                self._work(client, Reader(client, history, partition).run())

    def _read_all(self) -> dict[TopicPartition, list[ReadRecord]]:
        client = self._new_client("final")
        records: dict[TopicPartition, list[ReadRecord]] = {each: [] for each in self.partitions}
        for partition in self.partitions:
            self._work(client, _read_to_end(client, partition, records[partition]))
        self._finish(FINISH_S_MAX, "read everything")
        return records

    # Phases.

    def _start_faults(self) -> Faults:
        faults = Faults(
            self.scheduler,
            self.network,
            self.nodes,
            [client.host for client in self._clients],
            self.profile.faults,
            self.profile.fault_interval_s,
        )
        faults.start()
        return faults

    def _look(self) -> None:
        for node in self.nodes:
            if node.serving:
                for checker in self.checkers:
                    checker.look(node)
        self.scheduler.call_later(LOOK_INTERVAL_S, self._look)

    def _finish(self, seconds_max: float, what: str) -> None:
        self._wait(lambda: not self._working, seconds_max, what)

    def _wait(self, done: Callable[[], bool], seconds_max: float, what: str) -> None:
        self.scheduler.run_until(self.scheduler.now + seconds_max, done)
        if not done():
            who = [str(node) for node in self.nodes if not node.serving]
            who += sorted(set(self._working.values()))
            raise Stalled(f"{', '.join(who)} did not {what} within {seconds_max} s")

    def _dispose(self) -> None:
        for host in self.network.hosts.values():
            host.dispose()


async def _read_to_end(
    client: Client, partition: TopicPartition, records: list[ReadRecord]
) -> None:
    fetcher = Fetcher(client, partition, committed=False)
    while fetcher.end_offset != fetcher.offset:
        records += await fetcher.poll(wait_ms=0)
