"""Sends tasks of a framework until stopped, and records those that the brokers accepted.

    python -m tests.cluster.faults.task_sender celery SEED

A batch whose sending fails is recorded as unknown: some of its tasks may run.
"""

import importlib
import signal
import sys
import threading
from random import Random
from typing import Final

from tests.integrations.processes import Journal

BATCH: Final = 10
DELAYED_SHARE: Final = 0.1
DELAY_S_MAX: Final = 3.0
RUN_S_MAX: Final = 0.3
PAUSE_S: Final = 0.2


def main(framework: str, seed: int) -> None:
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    tasks = importlib.import_module(f"tests.integrations.{framework}_tasks")
    journal: Journal = tasks.JOURNAL
    random = Random(seed)
    while not stop.wait(PAUSE_S):
        calls = [(tasks.new_name(), random.uniform(0, RUN_S_MAX)) for _ in range(BATCH)]
        is_delayed = random.random() < DELAYED_SHARE
        delay_s = random.uniform(0.5, DELAY_S_MAX) if is_delayed else None
        try:
            tasks.send(tasks.work, *calls, delay_s=delay_s)
            event = "sent"
        except Exception as error:
            print(f"not sent: {error!r}", flush=True)
            event = "unknown"
        for name, _ in calls:
            journal.note(event, name)
    getattr(tasks, "close", lambda: None)()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
