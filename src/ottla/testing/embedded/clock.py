"""A clock that a test can move: record timestamps and all timers follow it."""

import time


class MovableClock:
    """Implements `runtime.clock.Clock`. Any thread may move it."""

    def __init__(self) -> None:
        self._shift_ms = 0.0  # Of both times; it only grows.
        self._wall_shift_ms = 0  # Of the wall clock alone.

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000 + int(self._shift_ms) + self._wall_shift_ms

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0 + self._shift_ms

    def advance(self, milliseconds: float) -> None:
        assert milliseconds >= 0
        self._shift_ms += milliseconds

    def set_wall_clock(self, now_ms: int) -> None:
        """Set any time of day; timers are unaffected."""
        self._wall_shift_ms += now_ms - self.now_ms()
