"""Celery with its own worker processes (prefork), on a real broker."""

import time
from pathlib import Path
from types import ModuleType

import pytest
from tests.broker_process import BrokerProcess
from tests.integrations.processes import Journal, Worker, wait_until

pytestmark = pytest.mark.process

WORKER = (
    *("celery", "-A", "tests.integrations.celery_tasks", "worker"),
    *("--loglevel", "info", "--concurrency", "2"),
)


def test_every_task_runs_once(tasks: ModuleType, worker: Worker, journal: Journal) -> None:
    names = [tasks.new_name() for _ in range(40)]
    for name in names:
        tasks.work.delay(name)
    wait_until(lambda: journal.count("acked", names) == 40, "every task", worker)
    assert journal.count("begun", names) == 40


def test_a_countdown_is_kept_by_the_broker(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    name = tasks.new_name()
    sent_s = time.time()
    tasks.work.apply_async((name,), countdown=2)
    wait_until(lambda: journal.count("acked", [name]), "the task", worker)
    (begun_s,) = journal.times("begun", name)
    assert begun_s >= sent_s + 2


def test_a_retry_waits_for_its_countdown(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    name = tasks.new_name()
    tasks.fail_twice.delay(name)
    wait_until(lambda: journal.count("done", [name]), "the third try", worker)
    first, second, third = journal.times("begun", name)
    assert second >= first + tasks.RETRY_S
    assert third >= second + tasks.RETRY_S


def test_workers_answer_remote_control(tasks: ModuleType, worker: Worker) -> None:
    def pong() -> bool:
        return any("ok" in answer for each in tasks.app.control.ping() for answer in each.values())

    wait_until(pong, "an answer to a ping", worker)
    queues = tasks.app.control.inspect(timeout=10, limit=1).active_queues()
    ((found,),) = queues.values()
    assert found["name"] == tasks.QUEUE


def test_tasks_of_a_killed_worker_run_elsewhere(
    tasks: ModuleType, worker: Worker, journal: Journal, directory: Path
) -> None:
    short, *long = [tasks.new_name() for _ in range(3)]
    tasks.work.delay(short)
    wait_until(lambda: journal.count("acked", [short]) == 1, "an acknowledged task", worker)
    for name in long:
        tasks.wait_for_another_try.delay(name)
    wait_until(lambda: journal.count("begun", long) == 2, "tasks that run", worker)
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
        tasks.wait_for_note.delay(name, after)
        wait_until(lambda: journal.count("begun", [name]), "the task", patient)
        task_broker.kill()
        task_broker.start()
        tasks.work.delay(after)
        wait_until(lambda: journal.count("acked", [name, after]) == 2, "both tasks", patient)
    assert journal.count("begun", [name]) == 1


def test_a_worker_that_stops_finishes_what_runs_and_gives_back_the_rest(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    names = [tasks.new_name() for _ in range(8)]
    for name in names:
        tasks.work.delay(name, 0.5)
    wait_until(lambda: journal.count("begun", names), "tasks that run", worker)
    worker.stop()
    assert journal.count("done", names) == journal.count("begun", names)
    worker.start()
    wait_until(lambda: journal.count("acked", names) == 8, "every task", worker)
    assert journal.count("begun", names) == 8
