"""Celery with its own worker processes (prefork), on a real broker."""

from types import ModuleType

import pytest
from tests.integrations.processes import WORKERS, Worker, wait_until
from tests.integrations.worker_tests import *  # noqa: F403

pytestmark = pytest.mark.process

WORKER = WORKERS["celery"]


def test_workers_answer_remote_control(tasks: ModuleType, worker: Worker) -> None:
    def pong() -> bool:
        return any("ok" in answer for each in tasks.app.control.ping() for answer in each.values())

    wait_until(pong, "an answer to a ping", worker)
    queues = tasks.app.control.inspect(timeout=10, limit=1).active_queues()
    ((found,),) = queues.values()
    assert found["name"] == tasks.QUEUE
