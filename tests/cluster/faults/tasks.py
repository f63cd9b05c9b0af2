"""Workers and brokers killed while Celery, Dramatiq and Taskiq run tasks.

    python -m tests.cluster.faults.tasks --minutes 5

Three nodes, and for each framework two workers and a program that sends tasks, a tenth of them with
a delay. Every few seconds a worker or a node is killed (SIGKILL) and restarted. At the end every
task that was sent must have run, and none may have started after the brokers had confirmed its
acknowledgement.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

from tests.cluster.faults.replicas import different_replicas
from tests.cluster.processes import ClusterProcesses, wait_until
from tests.integrations.processes import WORKERS, Journal, Worker

WORKERS_EACH: Final = 2
LOCK_S: Final = 5.0
SETTLE_S: Final = 600.0
SHOWN_MAX: Final = 20
NODE_SETTINGS: Final = (
    *("--set", "min.insync.replicas=2"),
    *("--set", "num.partitions=3"),
    # More than the kills of one task's workers.
    *("--set", "group.share.delivery.count.limit=10"),
)


class Load:
    """The workers and the sender of one framework."""

    def __init__(self, framework: str, directory: Path, bootstrap: str, seed: int) -> None:
        self.framework = framework
        directory = directory / framework
        directory.mkdir()
        self.journal = Journal(directory / "journal")
        environment = {
            "OTTLA_BOOTSTRAP_SERVER": bootstrap,
            "TASKS_QUEUE": f"trial-{framework}",
            "TASKS_JOURNAL": str(self.journal.path),
            "TASKS_LOCK_S": str(LOCK_S),
        }
        self.workers = [
            Worker(WORKERS[framework], directory, f"worker-{number}", **environment)
            for number in range(WORKERS_EACH)
        ]
        command = ("tests.cluster.faults.task_sender", framework, str(seed))
        self.sender = Worker(command, directory, "sender", **environment)

    def start(self) -> None:
        for process in (*self.workers, self.sender):
            process.start()

    def stop(self) -> None:
        for process in (self.sender, *self.workers):
            process.stop()

    def kill(self) -> None:
        for process in (self.sender, *self.workers):
            process.kill()

    @property
    def has_begun(self) -> bool:
        return bool(self.journal.tasks("acked"))

    @property
    def unfinished(self) -> set[str]:
        return set(self.journal.tasks("sent")) - set(self.journal.tasks("done"))

    def findings(self) -> list[str]:
        found = [f"{self.framework}: {name} never ran" for name in sorted(self.unfinished)]
        repeated = self.journal.begun_after_ack(self.journal.tasks("acked"))
        found += [f"{self.framework}: {entry.task} ran after its ack" for entry in repeated]
        return found[:SHOWN_MAX]

    def summary(self) -> str:
        counts = Counter(entry.event for entry in self.journal.entries())
        return (
            f"{self.framework}: {counts['sent']} sent, {counts['unknown']} unknown,"
            f" {counts['begun']} runs, {len(set(self.journal.tasks('acked')))} acknowledged"
        )


class TaskTrial:
    def __init__(
        self, directory: Path, frameworks: Sequence[str], seed: int, say: Callable[[str], None]
    ) -> None:
        self.kills: Counter[str] = Counter()
        self.loads: list[Load] = []
        self._directory = directory
        self._frameworks = frameworks
        self._seed = seed
        self._random = Random(seed)
        self._say = say

    def run(self, seconds: float) -> list[str]:
        """Returns the findings."""
        with ExitStack() as stack:
            cluster = stack.enter_context(ClusterProcesses(self._directory, 3, *NODE_SETTINGS))
            cluster.wait_for_voters(1, 2, 3)
            self.loads = [
                Load(framework, self._directory, cluster.bootstrap, self._seed)
                for framework in self._frameworks
            ]
            for load in self.loads:
                stack.callback(load.kill)  # Even if the trial gives up.
                load.start()
            wait_until(lambda: all(load.has_begun for load in self.loads), "the first tasks")
            end_s = time.monotonic() + seconds
            while time.monotonic() < end_s:
                self._disturb(cluster)
            for load in self.loads:
                load.sender.stop()
            self._settle()
            for load in self.loads:
                load.stop()
            different = different_replicas(cluster.data)
        return different + [finding for load in self.loads for finding in load.findings()]

    def _disturb(self, cluster: ClusterProcesses) -> None:
        time.sleep(self._random.uniform(0.2, 4.0))
        if self._random.random() < 0.5:
            worker = self._random.choice(self._random.choice(self.loads).workers)
            self.kills["worker"] += 1
            worker.kill()
            worker.start()
        else:
            node_id = self._random.choice(cluster.ids)
            self.kills["broker"] += 1
            cluster.kill(node_id)
            time.sleep(self._random.uniform(0.0, 3.0))
            cluster.restart(node_id)
        self._say(self.summary())

    def _settle(self) -> None:
        """Waits until every task has run, and any lock would have expired."""
        deadline_s = time.monotonic() + SETTLE_S
        while any(load.unfinished for load in self.loads) and time.monotonic() < deadline_s:
            time.sleep(0.5)
        time.sleep(2 * LOCK_S)

    def summary(self) -> str:
        killed = f"{self.kills['worker']} workers and {self.kills['broker']} brokers killed"
        return "; ".join([killed, *(load.summary() for load in self.loads)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--frameworks", nargs="+", choices=WORKERS, default=list(WORKERS))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # With all of its processes.
    directory = Path(tempfile.mkdtemp(prefix="ottla-tasks-"))
    trial = TaskTrial(
        directory, arguments.frameworks, arguments.seed, lambda line: print(line, flush=True)
    )
    findings = trial.run(arguments.minutes * 60)
    print(f"the logs are in {directory}")
    print(trial.summary())
    print("\n".join(findings) or "every task ran, and none again after its acknowledgement")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
