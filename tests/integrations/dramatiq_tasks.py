"""Tasks for workers of Dramatiq."""

import uuid
from typing import Any

import dramatiq
from tests.integrations.journaled import JOURNAL, LOCK_S, QUEUE, note_acknowledgements, run
from tests.integrations.processes import wait_until

from ottla.integrations.dramatiq import OttlaBroker

RETRY_S = 0.5

broker = OttlaBroker(namespace=QUEUE, lock_s=LOCK_S)
dramatiq.set_broker(broker)
note_acknowledgements()


@dramatiq.actor
def work(name: str, seconds: float = 0.0) -> None:
    run(name, seconds)


@dramatiq.actor(max_retries=3, min_backoff=round(RETRY_S * 1000))
def fail_twice(name: str) -> None:
    JOURNAL.note("begun", name)
    if JOURNAL.count("begun", [name]) < 3:
        raise RuntimeError("not yet")
    JOURNAL.note("done", name)


@dramatiq.actor(max_retries=0)
def wait_for_another_try(name: str) -> None:
    """The first run does not finish."""
    JOURNAL.note("begun", name)
    wait_until(lambda: JOURNAL.count("begun", [name]) == 2, "a try")


@dramatiq.actor(max_retries=0)
def wait_for_note(name: str, other: str) -> None:
    """It finishes after the other one."""
    JOURNAL.note("begun", name)
    wait_until(lambda: JOURNAL.count("done", [other]), "the other")


def send(task: Any, *calls: tuple[Any, ...], delay_s: float | None = None) -> None:
    for arguments in calls:
        task.send_with_options(args=arguments, delay=delay_s and round(delay_s * 1000))


def new_name() -> str:
    return f"job-{uuid.uuid4().hex[:12]}"


def close() -> None:
    """For processes that have sent tasks."""
    broker.close()
