"""Taskiq with its own worker processes, on a real broker."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from taskiq.exceptions import SendTaskError
from tests.broker_process import BrokerProcess
from tests.integrations.processes import Journal, Worker, wait_until

pytestmark = pytest.mark.process

WORKER = (
    *("taskiq", "worker", "tests.integrations.taskiq_tasks:broker"),
    *("--workers", "1", "--max-async-tasks", "4"),
)


def send(tasks: ModuleType, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
    async def sending() -> None:
        await tasks.broker.startup()
        try:
            await work()
        finally:
            await tasks.broker.shutdown()

    asyncio.run(sending())


def test_every_task_runs_once(tasks: ModuleType, worker: Worker, journal: Journal) -> None:
    names = [tasks.new_name() for _ in range(40)]
    other = {"queue_name": f"{tasks.QUEUE}-other"}

    async def kick() -> None:
        for name in names[:20]:
            await tasks.work.kiq(name)
        for name in names[20:]:
            await tasks.work_async.kicker().with_labels(**other).kiq(name)

    send(tasks, kick)
    wait_until(lambda: journal.count("acked", names) == 40, "every task", worker)
    assert journal.count("begun", names) == 40


def test_a_queue_that_the_broker_does_not_have_is_refused(tasks: ModuleType) -> None:
    async def kick() -> None:
        with pytest.raises(SendTaskError) as caught:
            await tasks.work.kicker().with_labels(queue_name="elsewhere").kiq(tasks.new_name())
        assert "no queue 'elsewhere'" in str(caught.value.__cause__)

    send(tasks, kick)


def test_delays_are_kept(tasks: ModuleType, worker: Worker, journal: Journal) -> None:
    name = tasks.new_name()
    sent_s = time.time()
    send(tasks, lambda: tasks.work.kicker().with_labels(delay=2).kiq(name))
    wait_until(lambda: journal.count("acked", [name]), "the task", worker)
    (begun_s,) = journal.times("begun", name)
    assert begun_s >= sent_s + 2


def test_a_failed_task_is_tried_again_after_its_delay(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    name = tasks.new_name()
    send(tasks, lambda: tasks.fail_twice.kiq(name))
    wait_until(lambda: journal.count("done", [name]), "the third try", worker)
    first, second, third = journal.times("begun", name)
    assert second >= first + tasks.RETRY_S
    assert third >= second + tasks.RETRY_S


def test_tasks_of_a_killed_worker_run_elsewhere(
    tasks: ModuleType, worker: Worker, journal: Journal, directory: Path
) -> None:
    short, *long = [tasks.new_name() for _ in range(3)]

    async def kick() -> None:
        await tasks.work_async.kiq(short)
        for name in long:
            await tasks.wait_for_another_try.kiq(name)

    send(tasks, kick)
    wait_until(lambda: journal.count("begun", long) == 2, "tasks that run", worker)
    wait_until(lambda: journal.count("acked", [short]) == 1, "an acknowledged task", worker)
    worker.kill()
    with Worker(WORKER, directory, "other") as other:
        wait_until(lambda: journal.count("acked", long) == 2, "the tasks elsewhere", other)
    assert journal.count("begun", long) == 4
    assert journal.begun_after_ack([short, *long]) == []


def test_a_task_is_held_while_it_runs_though_the_broker_is_killed(
    tasks: ModuleType, worker: Worker, journal: Journal, task_broker: BrokerProcess, directory: Path
) -> None:
    worker.kill()  # Its locks are too short for a broker that is slow to start.
    name, after = tasks.new_name(), tasks.new_name()
    with Worker(WORKER, directory, "patient", TASKS_LOCK_S="300") as patient:
        send(tasks, lambda: tasks.wait_for_note.kiq(name, after))
        wait_until(lambda: journal.count("begun", [name]), "the task", patient)
        task_broker.kill()
        task_broker.start()
        send(tasks, lambda: tasks.work.kiq(after))
        wait_until(lambda: journal.count("acked", [name, after]) == 2, "both tasks", patient)
    assert journal.count("begun", [name]) == 1


def test_a_worker_that_stops_finishes_what_runs_and_gives_back_the_rest(
    tasks: ModuleType, worker: Worker, journal: Journal, directory: Path
) -> None:
    names = [tasks.new_name() for _ in range(8)]

    async def kick() -> None:
        for name in names:
            await tasks.work.kiq(name, 0.5)

    send(tasks, kick)
    wait_until(lambda: journal.count("begun", names), "tasks that run", worker)
    worker.stop()
    assert journal.count("done", names) == journal.count("begun", names)
    worker.start()
    wait_until(lambda: journal.count("acked", names) == 8, "every task", worker)
    assert journal.count("begun", names) == 8
