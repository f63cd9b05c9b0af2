"""A clock that is advanced by hand."""


class ManualClock:
    """Implements `runtime.clock.Clock`; both times are advanced together."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return float(self._now_ms)

    def advance(self, milliseconds: int) -> None:
        assert milliseconds >= 0
        self._now_ms += milliseconds
