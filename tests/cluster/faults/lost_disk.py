"""A node loses its disk: it must never become a second cluster.

    python -m tests.cluster.faults.lost_disk --rounds 3

missing       node 1 is killed, its directory removed, and it is started as before, without --join;
              producers that have all nodes in their bootstrap list go on meanwhile
removed       the directory of node 2 is removed under the running node, with the producers at work
found later   all nodes stop, node 1 loses its directory and comes up first: it begins a cluster,
              and has to stop when the others are back

After each, the node rejoins with an empty directory. At the end everything that was acknowledged
must be in the cluster.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka.admin import AdminClient
from tests.broker_process import BrokerProcess
from tests.cluster.clients import create_topic
from tests.cluster.faults.checker import check
from tests.cluster.faults.contents import read_topic
from tests.cluster.faults.history import History
from tests.cluster.faults.trial import wait_for_in_sync
from tests.cluster.faults.workload import END_TIMEOUT_S, Writer
from tests.cluster.processes import ClusterProcesses, wait_until

NODES: Final = 3
TOPIC: Final = "records"
PARTITIONS: Final = 3
WRITERS: Final = 4
KINDS: Final = ("missing", "removed", "found later")
CLAIMED: Final = "is a node of cluster"
CLAIM_NOTE: Final = ".ottla_claimed"
SERVES: Final = " serves "


@dataclass
class Outcome:
    rounds: dict[str, int] = field(default_factory=dict)
    acked_count: int = 0
    stopped_after_s: list[float] = field(default_factory=list)  # Since another node returned.
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} x {kind}" for kind, count in self.rounds.items())
        times = ", ".join(f"{seconds:.1f} s" for seconds in self.stopped_after_s) or "none"
        return "\n".join(
            [
                f"{kinds}; {self.acked_count} records acknowledged",
                f"second clusters that were begun ended, after the others were back, in: {times}",
                f"{len(self.findings)} findings",
                *self.findings,
            ]
        )


class Trial:
    def __init__(self, cluster: ClusterProcesses, say: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._say = say
        self._history = History()
        self.outcome = Outcome()

    def run(self, kinds: list[str]) -> Outcome:
        cluster = self._cluster
        cluster.wait_for_voters(*range(1, NODES + 1))
        create_topic(cluster, TOPIC, PARTITIONS)
        for number, kind in enumerate(kinds):
            self._say(kind)
            writers = [] if kind == "found later" else self._start_writers(number)
            getattr(self, f"_{kind.replace(' ', '_')}")()
            self.outcome.rounds[kind] = self.outcome.rounds.get(kind, 0) + 1
            for writer in writers:
                writer.ask_to_end()
            for writer in writers:
                writer.join(END_TIMEOUT_S)
        contents = read_topic(cluster.bootstrap, TOPIC, PARTITIONS)
        self.outcome.acked_count = sum(map(len, self._history.acked.values()))
        self.outcome.findings += check(self._history, contents)
        return self.outcome

    def _start_writers(self, number: int) -> list[Writer]:
        writers = [
            Writer(
                f"writer-{number}-{index}",
                self._history,
                self._cluster.bootstrap,
                TOPIC,
                PARTITIONS,
                idempotent=True,
            )
            for index in range(WRITERS)
        ]
        for writer in writers:
            writer.start()
        return writers

    # The scenario's steps.

    def _missing(self) -> None:
        node = self._cluster.node(1)
        self._cluster.kill(1)
        shutil.rmtree(node.data)
        self._launch_in_vain(node, CLAIMED)
        # On a busy machine, the others may call only once it has started.
        if node.data.exists() and not (node.data / CLAIM_NOTE).exists():
            self._find("node 1 began something in its empty directory, and may go on with it")
        self._join_again(1)

    def _removed(self) -> None:
        node = self._cluster.node(2)
        node.data.rename(gone := node.data.with_name("gone"))  # At once, like a failing disk.
        shutil.rmtree(gone, ignore_errors=True)
        wait_until(lambda: "removed or replaced while the node uses it" in node.log_text())
        wait_until(lambda: not node.is_running, "the end of node 2")
        node.stop()
        self._join_again(2)

    def _found_later(self) -> None:
        cluster, node = self._cluster, self._cluster.node(1)
        for node_id in cluster.running:
            cluster.terminate(node_id)
        shutil.rmtree(node.data)
        node.start()
        for node_id in range(2, NODES + 1):
            cluster.restart(node_id, wait=False)
        wait_until(lambda: any(_served(cluster.node(each)) for each in range(2, NODES + 1)))
        back_at = time.monotonic()
        wait_until(lambda: not node.is_running, "the end of node 1")
        self.outcome.stopped_after_s.append(time.monotonic() - back_at)
        node.stop()
        for node_id in range(2, NODES + 1):
            cluster.node(node_id).wait_until_ready()
        self._launch_in_vain(node, CLAIM_NOTE)
        shutil.rmtree(node.data)
        self._join_again(1)

    def _launch_in_vain(self, node: BrokerProcess, reason: str) -> None:
        """It exits: refused at the start, or once the others reach it on a busy machine."""
        before = len(node.log_text())
        node.launch()
        wait_until(lambda: not node.is_running, "the end of a node without its disk")
        code = node.stop()
        logged = node.log_text()[before:]
        if code != 1 or reason not in logged:
            self._find(f"exit code {code}, and the log says {logged[-500:]!r}")

    def _join_again(self, node_id: int) -> None:
        cluster, node = self._cluster, self._cluster.node(node_id)
        arguments = node.arguments
        others = ",".join(cluster.bootstrap_of(each) for each in cluster.ids if each != node_id)
        if "--join" not in arguments:
            node.arguments += ("--join", others)
        shutil.rmtree(node.data, ignore_errors=True)
        cluster.restart(node_id)
        node.arguments = arguments
        wait_for_in_sync(AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))
        wait_until(lambda: sorted(cluster.voters()) == list(range(1, NODES + 1)), "three voters")

    def _find(self, text: str) -> None:
        self.outcome.findings.append(text)
        self._say(text)


def _served(node: BrokerProcess) -> bool:
    """Since its last start."""
    return SERVES in node.log_text().rpartition("has stopped")[2]


def run_lost_disk(
    directory: Path, kinds: list[str], *arguments: str, say: Callable[[str], None] = lambda _: None
) -> Outcome:
    with ClusterProcesses(directory, NODES, *arguments) as cluster:
        return Trial(cluster, say).run(kinds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    kinds = list(KINDS) * arguments.rounds
    random.Random(arguments.seed).shuffle(kinds)
    directory = Path(tempfile.mkdtemp(prefix="ottla-lost-disk-"))
    begin = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - begin:7.1f} s  {text}", flush=True)

    outcome = run_lost_disk(directory, kinds, say=say)
    print(outcome)
    print(f"the nodes' logs are in {directory}")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
