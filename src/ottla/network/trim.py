"""Returns the memory of closed connections to the operating system.

A TLS connection has a buffer of 256 KB from its first byte on, so many handshakes at once make the
heap large. glibc keeps freed memory in its middle; `malloc_trim` returns it. Other C libraries have
no such function, and need none.
"""

from collections.abc import Callable
from typing import Final

CLOSED_MIN: Final = 64  # Connections with buffers of 16 MB in total.
INTERVAL_MS: Final = 10_000.0


def malloc_trim() -> None:
    """Takes milliseconds, without holding Python's lock."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class Trimmer:
    def __init__(
        self,
        monotonic_ms: Callable[[], float],
        start: Callable[[Callable[[], None]], object],
        trim: Callable[[], None] = malloc_trim,
    ) -> None:
        """`start` calls the function it is given, as a rule in another thread."""
        self._monotonic_ms = monotonic_ms
        self._start = start
        self._trim = trim
        self._closed = 0  # TLS connections since the last time.
        self._next_ms = 0.0

    def on_closed(self) -> None:
        """A TLS connection has ended, or its handshake has failed."""
        self._closed += 1

    def maybe_trim(self) -> None:
        now_ms = self._monotonic_ms()
        if self._closed < CLOSED_MIN or now_ms < self._next_ms:
            return
        self._closed = 0
        self._next_ms = now_ms + INTERVAL_MS
        self._start(self._trim)
