"""The time seam: what a node knows of time, and the real clock."""

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
