"""Turns of the event loop, shared so that clients with small requests need not wait for busy ones.

One receive may hold thousands of requests. A session dispatches them for as long as its turn lasts
and then queues for the next, with reading paused. The queue gets one turn in each round of the
event loop, whoever is in it, and everyone else is served in between.

While there is a queue, a turn is a single request. A session that wants little (one request, or a
few small ones) does not wait in it. The others that arrive while there is a queue share one turn in
each round; when it is over they queue up without being served, so a round stays short however many
arrive at once. While the queue is long they also receive little: what is not served yet waits in
the kernel, where it costs nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

TURN_MS: Final = 5.0
FRAMES_BETWEEN_LOOKS: Final = 16  # At the clock.
LITTLE_FRAMES: Final = 4  # A client looks something up and requests it in one go.
CROWD: Final = 16  # This many in the queue are a crowd.


class Turns:
    """`on_crowd` is called when the queue gets long, and when that is over."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        monotonic_ms: Callable[[], float],
        on_crowd: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._loop = loop
        self._monotonic_ms = monotonic_ms
        self._on_crowd = on_crowd
        self._crowded = False
        self._line: deque[Callable[[], None]] = deque()
        self._serving = False  # The queue is being served.
        self._newcomers_end_ms = 0.0  # The end of their turn in this round.

    def begin(self, *, is_peer: bool) -> tuple[int, float]:
        """After how many requests to ask whether the turn that begins now is over, and its end.

        0: a session that wants more than little must queue. Brokers need not.
        """
        if not self._line or is_peer:
            return FRAMES_BETWEEN_LOOKS, self._monotonic_ms() + TURN_MS
        if self._serving or self._monotonic_ms() < self._newcomers_end_ms:
            return 1, 0.0
        return 0, 0.0

    def is_over(self, end_ms: float) -> bool:
        return self._monotonic_ms() >= end_ms

    def wait(self, go_on: Callable[[], None]) -> None:
        if not self._line:
            self._newcomers_end_ms = self._monotonic_ms() + TURN_MS
            self._loop.call_soon(self._next)
        self._line.append(go_on)
        if len(self._line) >= CROWD and not self._crowded:
            self._crowded = True
            self._on_crowd(True)

    def _next(self) -> None:
        line = self._line
        end_ms = self._monotonic_ms() + TURN_MS
        self._serving = True
        for _ in range(len(line)):
            line.popleft()()
            if self._monotonic_ms() >= end_ms:
                break
        self._serving = False
        self._newcomers_end_ms = self._monotonic_ms() + TURN_MS
        if self._crowded and len(line) < CROWD // 2:
            self._crowded = False
            self._on_crowd(False)
        if line:
            self._loop.call_soon(self._next)
