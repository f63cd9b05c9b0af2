"""Tasks for workers of Taskiq."""

import asyncio
import uuid
from typing import Any

from taskiq import SmartRetryMiddleware
from tests.integrations.journaled import JOURNAL, LOCK_S, QUEUE, note_acknowledgements, run
from tests.integrations.processes import wait_until

from ottla.integrations.taskiq import OttlaBroker

RETRY_S = 0.5

broker = OttlaBroker(queues=(QUEUE, f"{QUEUE}-other"), group=QUEUE, lock_s=LOCK_S)
broker.add_middlewares(SmartRetryMiddleware(default_retry_count=3, default_delay=RETRY_S))
note_acknowledgements()


@broker.task
def work(name: str, seconds: float = 0.0) -> None:
    run(name, seconds)


@broker.task
async def work_async(name: str, seconds: float = 0.0) -> None:
    JOURNAL.note("begun", name)
    await asyncio.sleep(seconds)
    JOURNAL.note("done", name)


@broker.task(retry_on_error=True)
async def fail_twice(name: str) -> None:
    JOURNAL.note("begun", name)
    if JOURNAL.count("begun", [name]) < 3:
        raise RuntimeError("not yet")
    JOURNAL.note("done", name)


@broker.task
async def wait_for_another_try(name: str) -> None:
    """The first run does not finish."""
    JOURNAL.note("begun", name)
    await asyncio.to_thread(wait_until, lambda: JOURNAL.count("begun", [name]) == 2, "a try")


@broker.task
async def wait_for_note(name: str, other: str) -> None:
    """It finishes after the other one."""
    JOURNAL.note("begun", name)
    await asyncio.to_thread(wait_until, lambda: JOURNAL.count("done", [other]), "the other")


def send(task: Any, *calls: tuple[Any, ...], delay_s: float | None = None, **labels: str) -> None:
    if delay_s is not None:
        labels["delay"] = str(delay_s)

    async def sending() -> None:
        await broker.startup()
        try:
            for arguments in calls:
                await task.kicker().with_labels(**labels).kiq(*arguments)
        finally:
            await broker.shutdown()

    asyncio.run(sending())


def new_name() -> str:
    return f"job-{uuid.uuid4().hex[:12]}"
