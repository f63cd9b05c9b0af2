"""Throttles background work to a byte rate and to half of the time.

A computing thread holds the interpreter for milliseconds on end while the event loop waits. So the
work pauses as long as it has worked, in short turns.
"""

from collections.abc import Callable

TURN_MS = 1
REST_MS_MAX = 10


class Throttle:
    __slots__ = ("_due_ms", "_now_ms", "_pause", "_turn_began_ms", "bytes_per_second")

    def __init__(
        self,
        bytes_per_second: float,
        now_ms: Callable[[], int],
        pause: Callable[[float], object],
    ) -> None:
        """`pause` waits for this many seconds, or less if the work must stop."""
        self.bytes_per_second = bytes_per_second
        self._now_ms = now_ms
        self._pause = pause
        self._due_ms = 0.0  # When the work done so far would be due at this rate.
        self._turn_began_ms = now_ms()

    def done(self, work_bytes: int) -> None:
        """Called after each piece of work."""
        now_ms = self._now_ms()
        self._due_ms = max(self._due_ms, now_ms) + 1000 * work_bytes / self.bytes_per_second
        worked_ms = now_ms - self._turn_began_ms
        rest_ms = min(worked_ms, REST_MS_MAX) if worked_ms >= TURN_MS else 0
        wait_ms = max(self._due_ms - now_ms, rest_ms)
        if wait_ms >= 1:
            self._pause(wait_ms / 1000)
            self._turn_began_ms = self._now_ms()
