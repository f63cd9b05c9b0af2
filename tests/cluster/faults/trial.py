"""A cluster with busy clients and seeded faults; then everything is checked.

    python -m tests.cluster.faults.trial --minutes 20 [--seed N] [--nodes 3] [--locked passwords]

prints the seed first and ends with counts of faults and of promises made and kept. With `--locked`,
nodes use certificates, which are renewed from time to time, clients use passwords or certificates
over TLS and ACLs apply, and unauthorized clients try to write.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.clients import changed
from tests.cluster.faults.checker import Contents, check, check_copies, check_group
from tests.cluster.faults.contents import Unreadable, read_topic
from tests.cluster.faults.disks import Disk
from tests.cluster.faults.faults import Faults
from tests.cluster.faults.history import History
from tests.cluster.faults.intruder import Intruder
from tests.cluster.faults.links import Links
from tests.cluster.faults.locks import ADMIN, COPIER, READER, STRANGER, WRITER, ClientsBy, Locks
from tests.cluster.faults.replicas import different_replicas
from tests.cluster.faults.workload import NO_LOGIN, Copier, Reader, Worker, Writer
from tests.cluster.processes import ClusterProcesses, hasty

RECORDS, COPIES = "records", "copies"
PARTITIONS: Final = 3
REPLICAS: Final = 3
DISK_BYTES: Final = 1 << 30
IN_SYNC_TIMEOUT_S: Final = 300.0
END_TIMEOUT_S: Final = 300.0
STANDSTILL_S: Final = 90.0  # Longer than the timeout of a dead client's transaction.
LOOK_INTERVAL_S: Final = 1.0
LOOK_FACTOR: Final = 3
FINDINGS_SHOWN: Final = 20


@dataclass
class Outcome:
    faults: Counter[str] = field(default_factory=Counter)
    acked_count: int = 0
    consumed_count: int = 0
    transactions: Counter[bool | None] = field(default_factory=Counter)
    assignments: Counter[str] = field(default_factory=Counter)  # By group.
    disconnects_count: int = 0  # Replaced clients that had stalled.
    refused_count: int = 0  # Refused attempts of unauthorized clients.
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in sorted(self.faults.items()))
        ended = {True: "committed", False: "aborted", None: "unknown"}
        transactions = ", ".join(f"{n} {ended[how]}" for how, n in self.transactions.items())
        groups = ", ".join(f"{count} of {group}" for group, count in self.assignments.items())
        lines = [
            f"{sum(self.faults.values())} faults: {kinds}",
            f"{self.acked_count} records acknowledged, {self.consumed_count} read by the group",
            f"transactions: {transactions or 'none'}",
            f"assignments to members: {groups}",
            f"clients that stood still were disconnected {self.disconnects_count} times",
            f"{self.refused_count} records of intruders refused",
            f"{len(self.findings)} findings",
            *self.findings[:FINDINGS_SHOWN],
        ]
        return "\n".join(lines)


class Trial:
    """`say` gets a line per fault; `arguments` are for every `ottla serve`."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        *arguments: str,
        nodes: int = 3,
        copiers: int = 0,
        locked: ClientsBy | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._directory = directory
        self._arguments = arguments
        self._chance = random.Random(seed)
        self._nodes = nodes
        self._copiers = copiers
        self._locked = locked
        self._locks: Locks | None = None
        self._say = say
        self._history = History()
        self._outcome = Outcome()

    def run(self, seconds: float, kinds: list[str] | None = None) -> Outcome:
        """With faults of these kinds, or all that this machine allows."""
        with ExitStack() as stack:
            disks = self._mount_disks(stack)
            links = Links()
            self._locks = Locks(self._directory, links, self._locked) if self._locked else None
            cluster = stack.enter_context(
                ClusterProcesses(
                    self._directory,
                    self._nodes,
                    *hasty(),
                    *self._arguments,
                    links=links,
                    locks=self._locks,
                    keeps_synced=True,
                )
            )
            servers: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "log_level": 0}
            admin = AdminClient({**servers, **self._login(ADMIN)})
            _create_topics(admin, self._nodes)
            if self._locks:
                self._locks.grant(admin, RECORDS, COPIES)
            faults = Faults(
                cluster,
                self._chance,
                lambda: wait_for_in_sync(admin),
                disks,
                loses_power=True,
                renew=self._locks.renew if self._locks else None,
            )
            workers = self._start_workers(cluster.bootstrap)
            self._disturb(faults, kinds or list(faults.kinds), seconds)
            self._end(cluster, admin, workers, links)
        self._history.save(self._directory / "history.jsonl")
        return self._outcome

    def _login(self, user: str) -> Mapping[str, Any]:
        return self._locks.login(user) if self._locks else NO_LOGIN

    def _mount_disks(self, stack: ExitStack) -> dict[int, Disk]:
        try:
            return {
                node_id: stack.enter_context(
                    Disk(self._directory / f"node-{node_id}" / "data", DISK_BYTES)
                )
                for node_id in range(1, self._nodes + 1)
            }
        except OSError as error:
            self._say(f"no disk is filled: {error}")
            return {}

    def _start_workers(self, bootstrap: str) -> list[Worker]:
        history = self._history
        writers: list[Worker] = [
            Writer(
                f"writer-{number}",
                history,
                bootstrap,
                RECORDS,
                PARTITIONS,
                idempotent=number > 0,
                login=self._login(WRITER),
            )
            for number in range(3)
        ]
        login = self._login(READER)
        readers = [
            Reader(f"reader-{number}", history, bootstrap, "readers", RECORDS, login)
            for number in range(2)
        ]
        copying = (RECORDS, COPIES, PARTITIONS, self._login(COPIER))
        copiers = [
            Copier(f"copier-{number}", history, bootstrap, "copiers", *copying)
            for number in range(self._copiers)
        ]
        workers = [*writers, *readers, *copiers, *self._intruders(bootstrap)]
        for worker in workers:
            worker.start()
        return workers

    def _intruders(self, bootstrap: str) -> list[Intruder]:
        """One whose login has no rights, and one with a wrong password or certificate."""
        if self._locks is None:
            return []
        logins = {
            "stranger": self._locks.login(STRANGER),
            "liar": self._locks.forged_login(WRITER),
        }
        return [
            Intruder(name, self._history, bootstrap, RECORDS, login)
            for name, login in logins.items()
        ]

    def _disturb(self, faults: Faults, kinds: list[str], seconds: float) -> None:
        """All kinds in turn, in random order, for as long as there is time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for kind in self._chance.sample(kinds, len(kinds)):
                if time.monotonic() >= end:
                    break
                self._say(kind)
                faults.kinds[kind]()
                self._outcome.faults[kind] += 1
                for node_id in faults.bring_back():
                    self._history.on_problem(f"node {node_id} ended by itself: {kind}")
                time.sleep(self._chance.uniform(0.2, 2.0))

    def _end(
        self, cluster: ClusterProcesses, admin: AdminClient, workers: list[Worker], links: Links
    ) -> None:
        self._say("no more faults")
        wait_for_in_sync(admin)
        history, outcome = self._history, self._outcome
        writers = [worker for worker in workers if isinstance(worker, Writer)]
        end_all(writers)
        outcome.findings = self._check(cluster, links, lambda: end_all(workers))
        intruders = [worker for worker in workers if isinstance(worker, Intruder)]
        outcome.refused_count = sum(intruder.refused_count for intruder in intruders)
        outcome.acked_count = history.acked_count
        outcome.consumed_count = history.consumed_count
        outcome.assignments = history.assignments
        outcome.transactions = Counter(
            transaction.committed for transaction in history.transactions
        )

    def _check(
        self, cluster: ClusterProcesses, links: Links, end_all: Callable[[], None]
    ) -> list[str]:
        """Once clients had time to read and copy everything."""
        history, bootstrap = self._history, cluster.bootstrap
        try:
            records = read_topic(bootstrap, RECORDS, PARTITIONS, login=self._login(READER))
            self._wait_for_clients(links, lambda: check_group(history, records))
            if self._copiers:
                self._wait_for_clients(links, lambda: self._uncopied(bootstrap, records))
            end_all()
            findings = check(history, records) + check_group(history, records)
            findings += self._uncopied(bootstrap, records) if self._copiers else []
            return findings + different_replicas(cluster.data)
        except Unreadable as error:
            return [*history.problems, str(error)]

    def _wait_for_clients(self, links: Links, findings: Callable[[], list[str]]) -> None:
        """librdkafka may wait for a coordinator until any of its connections comes or goes.

        If a new connection is all that it needs, that is its own fault. Without any connection it
        would forget all brokers, which is what makes it wait.
        """
        if not reach_none(findings):
            self._say("clients stand still, and are disconnected from a node")
            self._outcome.disconnects_count += 1
            links.disconnect_clients(1)
            reach_none(findings)

    def _uncopied(self, bootstrap: str, records: Contents) -> list[str]:
        login = self._login(READER)
        copies = read_topic(bootstrap, COPIES, PARTITIONS, committed_only=True, login=login)
        return check_copies(self._history, records, copies)


def _create_topics(admin: AdminClient, nodes: int) -> None:
    config = {"min.insync.replicas": "2"}
    topics = [
        NewTopic(name, PARTITIONS, min(REPLICAS, nodes), config=config)
        for name in (RECORDS, COPIES)
    ]
    for created in admin.create_topics(topics).values():
        changed(created, KafkaError.TOPIC_ALREADY_EXISTS)


def wait_for_in_sync(admin: AdminClient) -> None:
    """Waits until every partition has a leader and all replicas in sync."""
    deadline = time.monotonic() + IN_SYNC_TIMEOUT_S
    while True:
        late = _not_in_sync(admin)
        if not late:
            return
        assert time.monotonic() < deadline, f"not in sync: {late}"
        time.sleep(0.1)


def _not_in_sync(admin: AdminClient) -> list[str]:
    try:
        topics = admin.list_topics(timeout=10).topics
    except KafkaException as error:
        return [str(error)]
    return [
        f"{name}-{partition.id} led by {partition.leader}, {partition.isrs} of {partition.replicas}"
        for name, topic in topics.items()
        for partition in topic.partitions.values()
        if partition.leader < 0 or len(partition.isrs) < len(partition.replicas)
    ]


def end_all(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.ask_to_end()
    for worker in workers:
        worker.join(END_TIMEOUT_S)
        if worker.is_alive():
            worker.history.on_problem(f"{worker.name} does not end")


def reach_none(findings: Callable[[], list[str]]) -> bool:
    """Clients that are behind get as long as they need while they make progress.

    Checks are rare, because each one reads everything again.
    """
    fewest, since = None, time.monotonic()
    while True:
        begin = time.monotonic()
        count = len(findings())
        now = time.monotonic()
        if fewest is None or count < fewest:
            fewest, since = count, now
        if not count or now > since + STANDSTILL_S:
            return not count
        time.sleep(max(LOOK_INTERVAL_S, LOOK_FACTOR * (now - begin)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--copiers", type=int, default=2)
    parser.add_argument("--locked", choices=[by.value for by in ClientsBy])
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="ottla-faults-"))
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)

    trial = Trial(
        directory,
        arguments.seed,
        *(word for setting in arguments.set for word in ("--set", setting)),
        nodes=arguments.nodes,
        copiers=arguments.copiers,
        locked=ClientsBy(arguments.locked) if arguments.locked else None,
        say=say,
    )
    outcome = trial.run(arguments.minutes * 60, arguments.kinds)
    print(outcome)
    print(f"the nodes' logs and the history are in {directory}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
