"""Several pipelines, each a process of its own, restarted when it fails.

A process that exits successfully is done. One that fails is restarted after a pause that doubles,
and abandoned after several consecutive failures; the others continue.
"""

import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

_PAUSE_S_MIN = 1.0
_PAUSE_S_MAX = 60.0
_HEALTHY_S = 300.0  # Running this long resets the count of consecutive failures.


class Member(NamedTuple):
    name: str
    command: Sequence[str]


class Group:
    """Active until `run` returns; `stop` may be called from anywhere, even by a signal."""

    def __init__(
        self,
        members: Sequence[Member],
        *,
        failures_max: int,
        say: Callable[[str], None],
        pause_s: float = _PAUSE_S_MIN,
    ) -> None:
        self._members = members
        self._failures_max = failures_max
        self._say = say
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # Guards the fields below.
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self.given_up: list[str] = []

    def run(self) -> None:
        """Returns when all have ended."""
        threads = [threading.Thread(target=self._keep, args=(each,)) for each in self._members]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # Short, so that signals are handled.

    def stop(self) -> None:
        self._stopping.set()
        # Without the lock, which a signal may interrupt: a later start checks by itself.
        for process in list(self._processes.values()):
            process.send_signal(signal.SIGTERM)

    def _keep(self, member: Member) -> None:
        failures = 0
        while not self._stopping.is_set():
            began = time.monotonic()
            code = self._run_once(member)
            if code == 0 or self._stopping.is_set():
                return
            failures = 1 if time.monotonic() - began > _HEALTHY_S else failures + 1
            if failures >= self._failures_max:
                self._say(f"{member.name}: given up after {failures} failures in a row")
                with self._lock:
                    self.given_up.append(member.name)
                return
            pause_s = min(self._pause_s * 2 ** (failures - 1), _PAUSE_S_MAX)
            pause_s *= random.uniform(0.5, 1.0)
            self._say(f"{member.name}: failed with {code}, starts again in {pause_s:.1f} s")
            self._stopping.wait(pause_s)

    def _run_once(self, member: Member) -> int:
        with self._lock:
            if self._stopping.is_set():
                return 0
            process = subprocess.Popen(
                member.command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # So that Ctrl-C reaches them once, through this process.
            )
            self._processes[member.name] = process
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._say(f"{member.name}: {line.rstrip()}")
        return process.wait()
