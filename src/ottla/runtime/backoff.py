"""Retry delays: doubled after each failure, with jitter, so that nodes that failed together do not
return together."""

from random import Random

_DOUBLINGS_MAX = 16


class Backoff:
    """From `first_s` to `longest_s`; each delay is reduced by a random part of up to a half."""

    def __init__(self, first_s: float, longest_s: float, random: Random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._random = random
        self._failures_count = 0

    def next_s(self) -> float:
        """Call after each failure."""
        delay_s = min(self._first_s * (1 << self._failures_count), self._longest_s)
        self._failures_count = min(self._failures_count + 1, _DOUBLINGS_MAX)
        return delay_s * (1 + self._random.random()) / 2

    def reset(self) -> None:
        """Call after a success."""
        self._failures_count = 0
