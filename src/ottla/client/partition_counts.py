"""Partition counts of topics, for partitioners written in Python."""

import time
from collections.abc import Callable
from typing import Final

REFRESH_S: Final = 60.0  # New partitions are noticed after this time, as in other clients.


class PartitionCounts:
    def __init__(self, ask: Callable[[str], int]) -> None:
        self._ask = ask
        self._known: dict[str, tuple[float, int]] = {}

    def of(self, topic: str) -> int:
        now = time.monotonic()
        asked_at, count = self._known.get(topic, (0.0, 0))
        if not count or now - asked_at > REFRESH_S:
            count = self._ask(topic)
            self._known[topic] = now, count
        return count
