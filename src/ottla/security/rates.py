"""Measures rates as Kafka does, so that the same quota allows the same.

A rate is the sum over the last windows, divided by the time they span; a rate that has just begun
counts as if all windows but the last had passed without anything. Times are milliseconds of any
monotonic clock.
"""

from collections import deque
from typing import NamedTuple


class Windows(NamedTuple):
    number: int
    size_ms: int

    @property
    def total_ms(self) -> int:
        return self.number * self.size_ms


class _Sample:
    __slots__ = ("last_ms", "start_ms", "value")

    def __init__(self, now_ms: float) -> None:
        self.start_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """In units per second."""

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[_Sample] = deque()  # Oldest first.

    def record(self, value: float, now_ms: float) -> None:
        """A negative value undoes an earlier one."""
        samples = self._samples
        if not samples or now_ms - samples[-1].start_ms >= self._windows.size_ms:
            samples.append(_Sample(now_ms))
        sample = samples[-1]
        sample.value += value
        sample.last_ms = now_ms

    def excess_ms(self, bound: float, now_ms: float) -> int:
        """How long to pause until the rate is within `bound` again; 0 if it is."""
        self._forget(now_ms)
        span_ms = self._span_ms(now_ms)
        rate = self._sum() / span_ms * 1000
        return 0 if rate <= bound else round((rate - bound) / bound * span_ms)

    def per_second(self, now_ms: float) -> float:
        self._forget(now_ms)
        return self._sum() / self._span_ms(now_ms) * 1000

    def is_idle(self, now_ms: float) -> bool:
        """Whether nothing counts any more."""
        self._forget(now_ms)
        return self._sum() <= 0

    def _sum(self) -> float:
        return sum(sample.value for sample in self._samples)

    def _forget(self, now_ms: float) -> None:
        samples, age_ms = self._samples, self._windows.total_ms
        while samples and now_ms - samples[0].last_ms >= age_ms:
            samples.popleft()

    def _span_ms(self, now_ms: float) -> float:
        size_ms = self._windows.size_ms
        elapsed_ms = now_ms - self._samples[0].start_ms if self._samples else 0.0
        missing = self._windows.number - 1 - int(elapsed_ms // size_ms)
        return max(elapsed_ms + max(missing, 0) * size_ms, 1.0)


class TokenBucket:
    """Fills at a rate, up to the amount of all windows. Taking tokens may make it negative."""

    __slots__ = ("_filled_ms", "_tokens", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens = 0.0
        self._filled_ms: float | None = None  # None: never, so it is full.

    def take(self, count: float, rate: float, now_ms: float) -> None:
        self._fill(rate, now_ms)
        self._tokens -= count

    def debt_ms(self, rate: float, now_ms: float) -> int:
        """How long until it is no longer negative; 0 if it is not."""
        self._fill(rate, now_ms)
        return 0 if self._tokens >= 0 else round(-self._tokens / rate * 1000)

    def is_full(self, rate: float, now_ms: float) -> bool:
        self._fill(rate, now_ms)
        return self._tokens >= self._burst(rate)

    def _burst(self, rate: float) -> float:
        return self._windows.total_ms / 1000 * rate

    def _fill(self, rate: float, now_ms: float) -> None:
        burst = self._burst(rate)
        if self._filled_ms is None:
            self._tokens = burst
        else:
            passed_s = (now_ms - self._filled_ms) / 1000
            self._tokens = min(burst, self._tokens + rate * passed_s)
        self._filled_ms = now_ms
