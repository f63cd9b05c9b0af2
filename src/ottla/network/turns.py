"""Turns of the event loop, shared so that nobody who asks little waits for those who ask much.

One receive may hold thousands of requests. A session dispatches them for as long as its turn lasts
and then waits in line for the next, reading paused. The line gets one turn in each round of the
event loop, whoever is in it, and everyone else is served in between. While there is a line, a turn
is a single request.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_MS: Final = 5.0
FRAMES_BETWEEN_LOOKS: Final = 64  # At the clock.


class Turns:
    def __init__(self, loop: asyncio.AbstractEventLoop, monotonic_ms: Callable[[], float]) -> None:
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._line: deque[Callable[[], None]] = deque()

    def begin(self) -> tuple[int, float]:
        """After how many requests to ask whether the turn that begins now is over, and its end."""
        if self._line:
            return 1, 0.0
        return FRAMES_BETWEEN_LOOKS, self._monotonic_ms() + TURN_MS

    def is_over(self, end_ms: float) -> bool:
        return self._monotonic_ms() >= end_ms

    def wait(self, go_on: Callable[[], None]) -> None:
        if not self._line:
            self._loop.call_soon(self._next)
        self._line.append(go_on)

    def _next(self) -> None:
        line = self._line
        end_ms = self._monotonic_ms() + TURN_MS
        for _ in range(len(line)):
            line.popleft()()
            if self._monotonic_ms() >= end_ms:
                break
        if line:
            self._loop.call_soon(self._next)
