"""Worker processes of frameworks, and the journal of the tasks that they run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tests.fork_server import REPOSITORY

PATIENCE_S = 300  # The machine may be busy.
STOP_S = 120


# Worker commands by framework; each begins with a module that Python runs.
WORKERS: dict[str, tuple[str, ...]] = {
    "celery": (
        *("celery", "-A", "tests.integrations.celery_tasks", "worker"),
        *("--loglevel", "info", "--concurrency", "2"),
    ),
    "dramatiq": (
        *("dramatiq", "tests.integrations.dramatiq_tasks"),
        *("--processes", "1", "--threads", "2"),
    ),
    "taskiq": (
        *("taskiq", "worker", "tests.integrations.taskiq_tasks:broker"),
        *("--workers", "1", "--max-async-tasks", "4"),
    ),
}


class Worker:
    """A command in its own session, so that its children can be killed with it."""

    def __init__(
        self, command: Sequence[str], directory: Path, name: str = "worker", **environment: str
    ) -> None:
        """`command` begins with a module, run by this Python."""
        self._environment = environment
        self.command = [sys.executable, "-m", *command]
        self._directory = directory
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        paths = [str(self._directory), str(REPOSITORY / "src"), str(REPOSITORY)]
        environment = {
            **os.environ,
            **self._environment,
            "PYTHONPATH": ":".join(paths),
            "PYTHONUNBUFFERED": "1",
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                cwd=self._directory,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def kill(self) -> None:
        """Kills it with all its children, as if the machine died."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """Running tasks may finish."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        self._end_children()
        self._process = None

    def _end_children(self) -> None:
        assert self._process is not None
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def log_text(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""


class Entry(NamedTuple):
    event: str  # begun, done, acked
    task: str
    at_s: float
    pid: int


class Journal:
    """The lines of a file that several processes append to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, event: str, task: object) -> None:
        line = f"{event} {task} {time.time():.6f} {os.getpid()}\n"
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def entries(self, event: str | None = None) -> list[Entry]:
        if not self.path.exists():
            return []
        found = []
        for line in self.path.read_text().splitlines():
            name, task, at_s, pid = line.split()
            found.append(Entry(name, task, float(at_s), int(pid)))
        return [entry for entry in found if event in (None, entry.event)]

    def tasks(self, event: str) -> list[str]:
        return [entry.task for entry in self.entries(event)]

    def times(self, event: str, task: str) -> list[float]:
        return [entry.at_s for entry in self.entries(event) if entry.task == task]

    def count(self, event: str, tasks: Collection[str]) -> int:
        return sum(entry.task in tasks for entry in self.entries(event))

    def begun_after_ack(self, tasks: Collection[str]) -> list[Entry]:
        """Runs of tasks after the broker had confirmed their acknowledgement."""
        acked: dict[str, float] = {}
        for entry in self.entries("acked"):
            acked.setdefault(entry.task, entry.at_s)
        return [
            entry
            for entry in self.entries("begun")
            if entry.task in tasks and entry.at_s > acked.get(entry.task, float("inf"))
        ]


def wait_until(condition: Callable[[], object], what: str, *workers: Worker) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            logs = "\n".join(worker.log_text()[-4_000:] for worker in workers)
            raise AssertionError(f"not in time: {what}\n{logs}")
        time.sleep(0.02)
