"""Stops all nodes of a cluster at once while clients write.

    python -m tests.cluster.faults.stops --rounds 5

Each must stop in order, within its time budget, and none may give up waiting for a controller that
is stopping too. Acknowledged records are there after a restart.
"""

import argparse
import signal
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.cluster.clients import admin, create_topic
from tests.cluster.faults.checker import check
from tests.cluster.faults.contents import read_topic
from tests.cluster.faults.history import History
from tests.cluster.faults.trial import end_all, wait_for_in_sync
from tests.cluster.faults.workload import Writer
from tests.cluster.processes import ClusterProcesses, wait_until

TOPIC = "records"
PARTITIONS = 6
WRITERS = 3
ACKED_PER_ROUND = 300
GIVEN_UP = "stopping without handing over"


@dataclass
class Stops:
    seconds: list[float] = field(default_factory=list)  # Until the last node exited.
    codes: list[int] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)  # Log lines.
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        times = ", ".join(f"{seconds:.1f}" for seconds in self.seconds)
        return (
            f"{len(self.seconds)} stops of all nodes took {times} s; "
            f"{sum(map(bool, self.codes))} nodes failed, {len(self.given_up)} gave up waiting; "
            f"{len(self.problems)} problems of clients"
        )


def stop_all(cluster: ClusterProcesses) -> tuple[float, list[int]]:
    """The time until all had exited, and their exit codes."""
    began = time.monotonic()
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda node_id=node_id: codes.append(cluster.terminate(node_id)))
        for node_id in cluster.ids
    ]
    for node_id in cluster.ids:
        cluster.node(node_id).send(signal.SIGTERM)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began, codes


def run_stops(cluster: ClusterProcesses, rounds: int) -> Stops:
    outcome, history = Stops(), History()
    cluster.wait_for_voters(*cluster.ids)
    create_topic(cluster, TOPIC, PARTITIONS)
    writers = [
        Writer(f"w{n}", history, cluster.bootstrap, TOPIC, PARTITIONS, idempotent=True)
        for n in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    for number in range(1, rounds + 1):
        wait_until(lambda: history.acked_count >= number * ACKED_PER_ROUND, "records")  # noqa: B023
        seconds, codes = stop_all(cluster)
        outcome.seconds.append(seconds)
        outcome.codes += codes
        for node_id in cluster.ids:
            cluster.restart(node_id, wait=False)
        for node_id in cluster.ids:
            cluster.node(node_id).wait_until_ready()
    wait_for_in_sync(admin(cluster))
    end_all(list(writers))
    outcome.given_up = [line for line in cluster.log_text().splitlines() if GIVEN_UP in line]
    outcome.problems = check(history, read_topic(cluster.bootstrap, TOPIC, PARTITIONS))
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="ottla-stops-"))
    with ClusterProcesses(directory) as cluster:
        outcome = run_stops(cluster, arguments.rounds)
    print(outcome)
    print(f"the nodes' logs are in {directory}")
    return 1 if any(outcome.codes) or outcome.given_up or outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
