"""Several pipelines, each a process of its own, started again when it fails.

A process that ends well is done. One that fails is started again after a pause that doubles, and
given up after some failures in a row; the others go on.
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
_HEALTHY_S = 300.0  # One that ran for so long has not failed in a row.


class Member(NamedTuple):
    name: str
    command: Sequence[str]


class Group:
    """Runs from `run` to its end; `stop` may be called from anywhere, also a signal."""

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
        self._lock = threading.Lock()  # Of what follows.
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self.given_up: list[str] = []

    def run(self) -> None:
        """Until all have ended."""
        threads = [threading.Thread(target=self._keep, args=(each,)) for each in self._members]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.2)  # So that signals are seen.

    def stop(self) -> None:
        self._stopping.set()
        # Without the lock, which a signal may interrupt: who starts one later looks for itself.
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
                start_new_session=True,  # A ctrl-c reaches them once, from here.
            )
            self._processes[member.name] = process
        if self._stopping.is_set():
            process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                self._say(f"{member.name}: {line.rstrip()}")
        return process.wait()
