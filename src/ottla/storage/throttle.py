"""Slows background work down to a rate of bytes."""

from collections.abc import Callable


class Throttle:
    """Also lets other threads run after each piece of work, however fast it may go."""

    __slots__ = ("_bytes_per_second", "_due_ms", "_now_ms", "_pause")

    def __init__(
        self,
        bytes_per_second: float,
        now_ms: Callable[[], int],
        pause: Callable[[float], object],
    ) -> None:
        """`pause` waits for so many seconds, or less if the work is to stop."""
        self._bytes_per_second = bytes_per_second
        self._now_ms = now_ms
        self._pause = pause
        self._due_ms = 0.0  # When the work done so far would be due at the rate.

    def done(self, work_bytes: int) -> None:
        now_ms = self._now_ms()
        self._due_ms = max(self._due_ms, now_ms) + 1000 * work_bytes / self._bytes_per_second
        self._pause(max(0.0, (self._due_ms - now_ms) / 1000))
