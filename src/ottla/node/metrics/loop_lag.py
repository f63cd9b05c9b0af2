"""The event loop's lag: the delay before any request is processed."""

import asyncio
from collections.abc import Callable
from typing import Final

LAG_INTERVAL_S: Final = 0.25
_LAGS_KEPT: Final = 120  # 30 s, so that a scrape every 15 s misses none.


class LoopLag:
    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._lags_s = [0.0] * _LAGS_KEPT
        self._next = 0

    async def watch(self) -> None:
        while True:
            due_s = self._now_s() + LAG_INTERVAL_S
            await asyncio.sleep(LAG_INTERVAL_S)
            self._lags_s[self._next] = max(0.0, self._now_s() - due_s)
            self._next = (self._next + 1) % _LAGS_KEPT

    @property
    def worst_s(self) -> float:
        return max(self._lags_s)
