"""Virtual time: the next callback due, across all processes.

Callbacks take no time. Those that are ready run in the order in which they became so; when none is,
time jumps to the next timer.
"""

import asyncio
import hashlib
import random
from asyncio import Handle
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from ottla.testing.simulator.violation import Stalled

if TYPE_CHECKING:
    from ottla.testing.simulator.process import Process

STEPS_PER_INSTANT_MAX = 200_000  # More than that without time going on is an endless loop.

_Work = tuple["Process | None", Handle | Callable[[], object]]


class Trace:
    """What happened in a run, line by line, and a hash that only equal runs share."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, now: float, who: str, what: str) -> None:
        line = f"{now:11.6f} {who:<10} {what}"
        self.lines.append(line)
        self._hash.update(line.encode())

    def mix(self, data: bytes) -> None:
        """What is too much to read, such as every byte on the network, but must be the same."""
        self._hash.update(data)

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()


class Scheduler:
    """`Process` puts its handles here; the world outside of processes uses `call_at`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0  # Seconds since the run began.
        self.trace = Trace()
        self.running: Process | None = None  # Whose callback runs now, or ran last.
        self.failure: BaseException | None = None  # Ends the run.
        self.counts: Counter[str] = Counter()  # What happened how often.
        self._ready: deque[_Work] = deque()
        self._timers: list[tuple[float, int, _Work]] = []
        self._sequence = 0
        self._steps_in_instant = 0

    def chance(self, purpose: str) -> random.Random:
        """Each purpose has its own, so that a change of one does not move all the others."""
        return random.Random(f"{self.seed} {purpose}")

    def tell(self, who: str, what: str) -> None:
        self.trace.add(self.now, who, what)

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def fail(self, error: BaseException) -> None:
        """End the run with this, the first time."""
        if self.failure is None:
            self.failure = error
            self.tell("simulator", f"{type(error).__name__}: {error}")

    def call_soon(self, callback: Callable[[], object]) -> None:
        self._ready.append((None, callback))

    def call_at(self, when: float, callback: Callable[[], object]) -> None:
        self._push(when, (None, callback))

    def call_later(self, delay_s: float, callback: Callable[[], object]) -> None:
        self.call_at(self.now + delay_s, callback)

    def process_soon(self, process: "Process", handle: Handle) -> None:
        self._ready.append((process, handle))

    def process_at(self, when: float, process: "Process", handle: Handle) -> None:
        self._push(when, (process, handle))

    def run_until(self, deadline: float, done: Callable[[], bool] = lambda: False) -> None:
        """Up to that time, or until `done`; raises what failed."""
        try:
            while not done():
                work = self._next(deadline)
                if work is None:
                    self.now = max(self.now, deadline)
                    return
                process, handle = work
                if process is not None:
                    process.run(handle)  # type: ignore[arg-type]
                else:
                    handle()  # type: ignore[operator]
                if self.failure is not None:
                    raise self.failure
        finally:
            self.running = None
            asyncio._set_running_loop(None)

    def _next(self, deadline: float) -> _Work | None:
        if self._ready:
            self._steps_in_instant += 1
            if self._steps_in_instant > STEPS_PER_INSTANT_MAX:
                raise Stalled("callbacks call each other without end while time stands still")
            return self._ready.popleft()
        timers = self._timers
        while timers and timers[0][0] <= deadline:
            when, _, work = heappop(timers)
            handle = work[1]
            if isinstance(handle, Handle) and handle.cancelled():
                continue
            if when > self.now:
                self.now = when
                self._steps_in_instant = 0
            return work
        return None

    def _push(self, when: float, work: _Work) -> None:
        self._sequence += 1
        heappush(self._timers, (when, self._sequence, work))
