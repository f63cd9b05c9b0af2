"""Tests for the workers of every framework; test modules import them.

A test module has WORKER, the command of a worker. Its task program (NAME_tasks.py) has `send`,
which takes a task and the arguments of each call.
"""

import time
from pathlib import Path
from types import ModuleType

import pytest
from tests.broker_process import BrokerProcess
from tests.integrations.processes import Journal, Worker, wait_until


def test_every_task_runs_once(tasks: ModuleType, worker: Worker, journal: Journal) -> None:
    names = [tasks.new_name() for _ in range(40)]
    tasks.send(tasks.work, *[(name,) for name in names])
    wait_until(lambda: journal.count("acked", names) == 40, "every task", worker)
    assert journal.count("begun", names) == 40


def test_delays_are_kept(tasks: ModuleType, worker: Worker, journal: Journal) -> None:
    name = tasks.new_name()
    sent_s = time.time()
    tasks.send(tasks.work, (name,), delay_s=2)
    wait_until(lambda: journal.count("acked", [name]), "the task", worker)
    (begun_s,) = journal.times("begun", name)
    assert begun_s >= sent_s + 2


def test_a_failed_task_is_tried_again_after_its_delay(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    name = tasks.new_name()
    tasks.send(tasks.fail_twice, (name,))
    wait_until(lambda: journal.count("done", [name]), "the third try", worker)
    first, second, third = journal.times("begun", name)
    assert second >= first + tasks.RETRY_S
    assert third >= second + tasks.RETRY_S


def test_tasks_of_a_killed_worker_run_elsewhere(
    request: pytest.FixtureRequest,
    tasks: ModuleType,
    worker: Worker,
    journal: Journal,
    directory: Path,
) -> None:
    short, *long = [tasks.new_name() for _ in range(3)]
    tasks.send(tasks.work, (short,))
    wait_until(lambda: journal.count("acked", [short]) == 1, "an acknowledged task", worker)
    tasks.send(tasks.wait_for_another_try, *[(name,) for name in long])
    wait_until(lambda: journal.count("begun", long) == 2, "tasks that run", worker)
    worker.kill()
    with Worker(request.module.WORKER, directory, "other") as other:
        wait_until(lambda: journal.count("acked", long) == 2, "the tasks elsewhere", other)
    assert journal.count("begun", long) == 4
    assert journal.begun_after_ack([short, *long]) == []


def test_a_task_is_held_while_it_runs_though_the_broker_is_killed(
    request: pytest.FixtureRequest,
    tasks: ModuleType,
    worker: Worker,
    journal: Journal,
    task_broker: BrokerProcess,
    directory: Path,
) -> None:
    worker.kill()  # Its locks are too short for a broker that is slow to start.
    name, after = tasks.new_name(), tasks.new_name()
    with Worker(request.module.WORKER, directory, "patient", TASKS_LOCK_S="300") as patient:
        tasks.send(tasks.wait_for_note, (name, after))
        wait_until(lambda: journal.count("begun", [name]), "the task", patient)
        task_broker.kill()
        task_broker.start()
        tasks.send(tasks.work, (after,))
        wait_until(lambda: journal.count("acked", [name, after]) == 2, "both tasks", patient)
    assert journal.count("begun", [name]) == 1


def test_a_worker_that_stops_finishes_what_runs_and_gives_back_the_rest(
    request: pytest.FixtureRequest,
    tasks: ModuleType,
    worker: Worker,
    journal: Journal,
    directory: Path,
) -> None:
    worker.kill()  # Its locks are too short for a busy machine.
    names = [tasks.new_name() for _ in range(8)]
    with Worker(request.module.WORKER, directory, "stopping", TASKS_LOCK_S="300") as patient:
        tasks.send(tasks.work, *[(name, 0.5) for name in names])
        wait_until(lambda: journal.count("begun", names), "tasks that run", patient)
        patient.stop()
        assert journal.count("done", names) == journal.count("begun", names)
        patient.start()
        wait_until(lambda: journal.count("acked", names) == 8, "every task", patient)
    assert journal.count("begun", names) == 8
