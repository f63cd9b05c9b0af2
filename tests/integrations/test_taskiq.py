"""Taskiq with its own worker processes, on a real broker."""

from types import ModuleType

import pytest
from taskiq.exceptions import SendTaskError
from tests.integrations.processes import WORKERS, Journal, Worker, wait_until
from tests.integrations.worker_tests import *  # noqa: F403

pytestmark = pytest.mark.process

WORKER = WORKERS["taskiq"]


def test_workers_take_tasks_from_all_queues(
    tasks: ModuleType, worker: Worker, journal: Journal
) -> None:
    name = tasks.new_name()
    tasks.send(tasks.work_async, (name,), queue_name=f"{tasks.QUEUE}-other")
    wait_until(lambda: journal.count("acked", [name]) == 1, "the task", worker)


def test_a_queue_that_the_broker_does_not_have_is_refused(tasks: ModuleType) -> None:
    with pytest.raises(SendTaskError) as caught:
        tasks.send(tasks.work, (tasks.new_name(),), queue_name="elsewhere")
    assert "no queue 'elsewhere'" in str(caught.value.__cause__)
