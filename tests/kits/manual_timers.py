"""A machine's timers, driven by a test."""

from ottla.machine.contract import Expiry


class ManualTimers:
    def __init__(self) -> None:
        self.deadlines: dict[str, tuple[int, Expiry]] = {}  # In scheduling order.

    def schedule(self, key: str, deadline_ms: int, expiry: Expiry) -> None:
        self.cancel(key)
        self.deadlines[key] = (deadline_ms, expiry)

    def cancel(self, key: str) -> None:
        self.deadlines.pop(key, None)

    def names(self) -> set[str]:
        return set(self.deadlines)

    def pop_due(self, now_ms: int) -> tuple[int, Expiry] | None:
        """The deadline and the expiry operation of the next timer."""
        key = min(self.deadlines, key=lambda key: self.deadlines[key][0], default=None)
        if key is None or self.deadlines[key][0] > now_ms:
            return None
        return self.deadlines.pop(key)
