"""An event loop that can be ahead of its time.

It calls at once what was due in the time that it skipped, so an hour that a session, a delay or a
retention has to wait for takes no time.
"""

import asyncio

from ottla.testing.embedded.clock import MovableClock


class MovableLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: MovableClock) -> None:
        self._movable = clock
        super().__init__()

    def time(self) -> float:
        return self._movable.monotonic_ms() / 1000.0

    def look_again(self) -> None:
        """After the clock was moved, from any thread."""
        self.call_soon_threadsafe(lambda: None)
