"""Keyed timers on an event loop.

Group members postpone their deadline with every heartbeat, so that must cost next to nothing: a
later deadline is only recorded, and the loop's timer of that key, when it fires, is rearmed for the
remaining time.

A deadline is a time of the wall clock; the wait uses the monotonic clock. So the wall clock may not
have reached the deadline when the timer fires: it was set back meanwhile, or the loop rounded the
delay down, as uvloop does. The callback therefore gets the deadline too.
"""

from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable

from ottla.machine.contract import Expiry
from ottla.runtime.clock import Clock


class _Timer:
    __slots__ = ("deadline_ms", "due_ms", "expiry", "handle", "wakes_ms")

    def __init__(self, due_ms: int, deadline_ms: float, expiry: Expiry) -> None:
        self.due_ms = due_ms  # By the wall clock, as requested.
        self.deadline_ms = deadline_ms  # By the monotonic clock: immune to wall-clock steps.
        self.expiry = expiry
        self.wakes_ms = deadline_ms  # Invariant: never after deadline_ms.
        self.handle: TimerHandle | None = None


class LoopTimers:
    """Implements `machine.contract.Timers`."""

    def __init__(
        self, loop: AbstractEventLoop, clock: Clock, expire: Callable[[Expiry, int], None]
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._expire = expire
        self._timers: dict[str, _Timer] = {}

    def schedule(self, key: str, deadline_ms: int, expiry: Expiry) -> None:
        clock = self._clock
        deadline = clock.monotonic_ms() + (deadline_ms - clock.now_ms())
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = _Timer(deadline_ms, deadline, expiry)
            self._wake_later(key, timer)
            return
        timer.due_ms = deadline_ms
        timer.deadline_ms = deadline
        timer.expiry = expiry
        if deadline < timer.wakes_ms:
            if timer.handle is not None:
                timer.handle.cancel()
            self._wake_later(key, timer)

    def cancel(self, key: str) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None and timer.handle is not None:
            timer.handle.cancel()

    def expire_now(self, is_wanted: Callable[[str], bool]) -> int:
        """Expire the timers whose key is wanted, ahead of time; returns how many."""
        keys = [key for key in self._timers if is_wanted(key)]
        for key in keys:
            timer = self._timers[key]
            self.cancel(key)
            self._expire(timer.expiry, timer.due_ms)
        return len(keys)

    def cancel_all(self) -> None:
        for key in tuple(self._timers):
            self.cancel(key)

    def _wake_later(self, key: str, timer: _Timer) -> None:
        delay_ms = max(0.0, timer.deadline_ms - self._clock.monotonic_ms())
        timer.wakes_ms = timer.deadline_ms
        timer.handle = self._loop.call_later(delay_ms / 1000, self._wake, key, timer)

    def _wake(self, key: str, timer: _Timer) -> None:
        if timer.deadline_ms > timer.wakes_ms:
            self._wake_later(key, timer)
            return
        timer.handle = None  # It references this.
        del self._timers[key]
        self._expire(timer.expiry, timer.due_ms)
