"""Rate-limits log lines that a peer can cause, so that no peer can fill the log."""

import logging
from collections.abc import Callable

INTERVAL_MS = 1_000.0


class QuietLog:
    """One line of each kind per interval; the next one tells how many were omitted."""

    def __init__(self, logger: logging.Logger, monotonic_ms: Callable[[], float]) -> None:
        self._logger = logger
        self._monotonic_ms = monotonic_ms
        self._kinds: dict[str, tuple[float, int]] = {}  # When a kind may log again; omitted.

    def warn_rarely(self, kind: str, message: str, *arguments: object) -> None:
        left_out = self._left_out(kind, INTERVAL_MS)
        if left_out is None:
            return
        template = message
        if left_out:
            message += f" ({left_out} more like this)"
        self._logger.warning(message, *arguments, extra={"template": template})

    def is_due(self, kind: str, interval_ms: float) -> bool:
        """Whether a line of this kind, which is expensive to build, may be logged now."""
        return self._left_out(kind, interval_ms) is not None

    def _left_out(self, kind: str, interval_ms: float) -> int | None:
        """How many were omitted since the last one; None if this one must be as well."""
        now = self._monotonic_ms()
        quiet_until, left_out = self._kinds.get(kind, (now, 0))
        if now < quiet_until:
            self._kinds[kind] = (quiet_until, left_out + 1)
            return None
        self._kinds[kind] = (now + interval_ms, 0)
        return left_out
