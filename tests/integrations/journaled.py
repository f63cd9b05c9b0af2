"""For task programs: records what a task does, and when the broker has its acknowledgement.

Imported by worker processes. The environment names the file.
"""

import os
import re
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.integrations.processes import Journal

from ottla.client.share_wire.settling import ACCEPT, Verdict
from ottla.integrations.task_queue import Delivery, TaskQueue

QUEUE = os.environ["TASKS_QUEUE"]
LOCK_S = float(os.environ["TASKS_LOCK_S"])
JOURNAL = Journal(Path(os.environ["TASKS_JOURNAL"]))

_NAME = re.compile(r"job-[0-9a-z-]+")  # Each task of these programs gets one such text.


def run(name: str, seconds: float) -> str:
    JOURNAL.note("begun", name)
    time.sleep(seconds)
    JOURNAL.note("done", name)
    return name


def note_acknowledgements(text_of: Callable[[bytes], str] = bytes.decode) -> None:
    settle_all = TaskQueue.settle_all

    async def noted(
        self: TaskQueue, deliveries: Iterable[Delivery], verdict: Verdict, **options: Any
    ) -> list[Delivery]:
        confirmed = await settle_all(self, deliveries, verdict, **options)
        if verdict is ACCEPT:
            for delivery in confirmed:
                name = _NAME.search(text_of(delivery.value))
                if name is not None:
                    JOURNAL.note("acked", name[0])
        return confirmed

    TaskQueue.settle_all = noted  # type: ignore[method-assign]
