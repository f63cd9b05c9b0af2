"""Stalled connections: they use memory for incomplete requests or unread responses.

A request has a time limit, and in each grace period at least as many bytes must arrive as the
minimum rate demands. A peer whose bytes wait in the kernel is not slow: we are. While memory is
short the grace is a tenth, and responses must be read as fast; then only sessions that use more
than a little are judged.

Time passes here only as fast as the sweeps come, so that a process that was stopped for a while
does not consider everyone stalled.
"""

from ottla.network.config import NetworkConfig
from ottla.protocol.lazy_dataclass import dataclass

SHORT_GRACE_DIVISOR = 10
SWEEPS_PER_GRACE = 5
SWEEP_INTERVAL_S_MAX = 1.0
SWEEP_INTERVAL_S_MIN = 0.01


@dataclass(frozen=True, slots=True)
class Patience:
    """What is allowed at the time of a sweep."""

    now_ms: float
    grace_ms: float
    bytes_min: float  # In each grace period.
    timeout_ms: float  # For a whole request; -1 for none.
    short: bool  # Memory is short.


class Transfer:
    """The bytes moved in one direction, as seen by sweeps."""

    __slots__ = ("begun_ms", "moved", "seen_ms")

    def __init__(self, now_ms: float, moved: int) -> None:
        self.begun_ms = now_ms
        self.seen_ms = now_ms
        self.moved = moved

    def is_slow(self, patience: Patience, moved: int) -> bool:
        if moved - self.moved >= max(patience.bytes_min, 1):
            self.go_on(patience, moved)
            return False
        return patience.now_ms - self.seen_ms >= patience.grace_ms

    def is_late(self, patience: Patience) -> bool:
        return 0 <= patience.timeout_ms <= patience.now_ms - self.begun_ms

    def go_on(self, patience: Patience, moved: int) -> None:
        """Count from here."""
        self.moved = moved
        self.seen_ms = patience.now_ms


class SweepClock:
    def __init__(self, config: NetworkConfig) -> None:
        short_grace_ms = config.receive_grace_ms / SHORT_GRACE_DIVISOR
        interval_s = min(short_grace_ms / SWEEPS_PER_GRACE / 1000, SWEEP_INTERVAL_S_MAX)
        self.interval_s = max(interval_s, SWEEP_INTERVAL_S_MIN)
        self._config = config
        self._swept_ms: float | None = None
        self._passed_ms = 0.0

    def patience(self, now_ms: float, *, short: bool) -> Patience:
        """For the current sweep."""
        config = self._config
        if self._swept_ms is not None:
            self._passed_ms += min(now_ms - self._swept_ms, 2000 * self.interval_s)
        self._swept_ms = now_ms
        grace_ms = config.receive_grace_ms / (SHORT_GRACE_DIVISOR if short else 1)
        return Patience(
            self._passed_ms,
            grace_ms,
            config.receive_rate_min * grace_ms / 1000,
            config.receive_timeout_ms,
            short,
        )
