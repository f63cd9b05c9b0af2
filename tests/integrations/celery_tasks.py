"""Tasks for workers of Celery."""

import os
import uuid
from typing import Any

from celery import Celery
from tests.integrations.journaled import JOURNAL, LOCK_S, QUEUE, note_acknowledgements, run
from tests.integrations.processes import wait_until

import ottla.integrations.kombu  # noqa: F401

RETRY_S = 0.5

app = Celery(broker=f"ottla://{os.environ['OTTLA_BOOTSTRAP_SERVER']}")
app.conf.update(
    broker_transport_options={"lock_s": LOCK_S, "group": QUEUE},
    task_acks_late=True,
    task_default_queue=QUEUE,
    task_ignore_result=True,
    task_publish_retry=False,  # A message published twice counts as two.
    worker_prefetch_multiplier=1,
)
note_acknowledgements()


@app.task
def work(name: str, seconds: float = 0.0) -> None:
    run(name, seconds)


@app.task(bind=True, max_retries=3)
def fail_twice(self: Any, name: str) -> None:
    JOURNAL.note("begun", name)
    if JOURNAL.count("begun", [name]) < 3:
        raise self.retry(countdown=RETRY_S)
    JOURNAL.note("done", name)


@app.task
def wait_for_another_try(name: str) -> None:
    """The first run does not finish."""
    JOURNAL.note("begun", name)
    wait_until(lambda: JOURNAL.count("begun", [name]) == 2, "a try")


@app.task
def wait_for_note(name: str, other: str) -> None:
    """It finishes after the other one."""
    JOURNAL.note("begun", name)
    wait_until(lambda: JOURNAL.count("done", [other]), "the other")


def send(task: Any, *calls: tuple[Any, ...], delay_s: float | None = None) -> None:
    for arguments in calls:
        task.apply_async(arguments, countdown=delay_s)


def new_name() -> str:
    return f"job-{uuid.uuid4().hex[:12]}"


def close() -> None:
    """For processes that have sent tasks."""
    app.pool.force_close_all()
    app.close()
