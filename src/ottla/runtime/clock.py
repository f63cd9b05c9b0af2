"""The time seam: the real clock, and one that is advanced by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time: milliseconds since 1970, as in record timestamps."""

    def monotonic_ms(self) -> float:
        """Time that never goes back, for waiting and measuring."""


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000.0


class ManualClock:
    """For tests: both times are advanced together, by hand."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return float(self._now_ms)

    def advance(self, milliseconds: int) -> None:
        assert milliseconds >= 0
        self._now_ms += milliseconds
