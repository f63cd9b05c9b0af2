"""One broker, queue, journal and worker for all tests of a framework: starts take seconds."""

import importlib
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.broker_process import BrokerProcess
from tests.integrations.processes import Journal, Worker


@pytest.fixture(scope="module")
def task_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that tests may kill and restart."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as broker:
        yield broker


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workers")


@pytest.fixture(scope="module")
def environment(task_broker: BrokerProcess, directory: Path) -> Iterator[None]:
    """The environment of the task programs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTTLA_BOOTSTRAP_SERVER", task_broker.bootstrap)
        patch.setenv("TASKS_QUEUE", f"tasks-{uuid.uuid4().hex[:8]}")
        patch.setenv("TASKS_JOURNAL", str(directory / "journal"))
        patch.setenv("TASKS_LOCK_S", "2")
        yield


@pytest.fixture(scope="module")
def journal(directory: Path) -> Journal:
    return Journal(directory / "journal")


@pytest.fixture(scope="module")
def tasks(request: pytest.FixtureRequest, environment: None) -> Iterator[ModuleType]:
    """The program as senders import it: test_NAME.py has NAME_tasks.py."""
    for name in ("tests.integrations.journaled", program_of(request)):
        sys.modules.pop(name, None)
    program = importlib.import_module(program_of(request))
    yield program
    getattr(program, "close", lambda: None)()


@pytest.fixture(scope="module")
def any_worker(
    request: pytest.FixtureRequest, environment: None, directory: Path
) -> Iterator[Worker]:
    with Worker(request.module.WORKER, directory) as worker:
        yield worker


@pytest.fixture
def worker(any_worker: Worker) -> Worker:
    """A running worker, whatever the previous test did to it."""
    if not any_worker.is_running:
        any_worker.start()
    return any_worker


def program_of(request: pytest.FixtureRequest) -> str:
    framework = request.module.__name__.rpartition("test_")[2]
    return f"tests.integrations.{framework}_tasks"
