from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import cast

import pytest
from tests.kits.manual_clock import ManualClock

from ottla.machine.contract import Expiry
from ottla.machine.result import Result
from ottla.runtime.loop_timers import LoopTimers


class Handle:
    def __init__(
        self, due_ms: float, callback: Callable[..., object], arguments: tuple[object, ...]
    ) -> None:
        self.due_ms = due_ms
        self.callback = callback
        self.arguments = arguments
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualLoop:
    """A loop whose timers fire when the test advances the clock."""

    def __init__(self) -> None:
        self.clock = ManualClock(0)
        self.handles: list[Handle] = []

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *arguments: object
    ) -> Handle:
        handle = Handle(self.clock.now_ms() + delay_s * 1000, callback, arguments)
        self.handles.append(handle)
        return handle

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        for handle in [
            candidate for candidate in self.handles if candidate.due_ms <= self.clock.now_ms()
        ]:
            self.handles.remove(handle)
            if not handle.cancelled:
                handle.callback(*handle.arguments)

    @property
    def armed(self) -> list[float]:
        return [handle.due_ms for handle in self.handles if not handle.cancelled]


def expiry(name: str) -> Expiry:
    return lambda now_ms: Result(None, cause=name)


@pytest.fixture
def loop() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def fired() -> list[str]:
    return []


@pytest.fixture
def timers(loop: ManualLoop, fired: list[str]) -> LoopTimers:
    return LoopTimers(
        cast("AbstractEventLoop", loop),
        loop.clock,
        lambda expired, due_ms: fired.append(expired(due_ms).cause),
    )


def test_a_timer_fires_once_at_its_deadline(
    loop: ManualLoop, timers: LoopTimers, fired: list[str]
) -> None:
    timers.schedule("session", 100, expiry("expiry"))
    loop.advance(99)
    assert fired == []
    loop.advance(1)
    loop.advance(1000)
    assert fired == ["expiry"]


def test_putting_a_deadline_off_does_not_touch_the_loop(
    loop: ManualLoop, timers: LoopTimers, fired: list[str]
) -> None:
    for now in range(0, 90, 10):
        timers.schedule("session", now + 100, expiry(f"of {now}"))
        loop.advance(10)
    assert len(loop.handles) == 1
    loop.advance(10)
    assert (fired, loop.armed) == ([], [180])
    loop.advance(80)
    assert fired == ["of 80"]


def test_an_earlier_deadline_is_kept(
    loop: ManualLoop, timers: LoopTimers, fired: list[str]
) -> None:
    timers.schedule("join", 100, expiry("late"))
    timers.schedule("join", 50, expiry("early"))
    loop.advance(50)
    assert fired == ["early"]
    loop.advance(100)
    assert fired == ["early"]


def test_a_cancelled_timer_is_gone(loop: ManualLoop, timers: LoopTimers, fired: list[str]) -> None:
    timers.schedule("a", 100, expiry("a"))
    timers.schedule("b", 100, expiry("b"))
    timers.cancel("a")
    timers.cancel("unknown")
    assert loop.armed == [100]
    timers.cancel_all()
    loop.advance(200)
    assert (fired, loop.armed) == ([], [])


def test_a_timer_can_be_scheduled_anew_when_it_fires(
    loop: ManualLoop, timers: LoopTimers, fired: list[str]
) -> None:
    timers.schedule("check", 100, expiry("first"))
    loop.advance(100)
    timers.schedule("check", 200, expiry("second"))
    loop.advance(100)
    assert fired == ["first", "second"]


def test_a_step_of_the_wall_clock_does_not_end_sessions(loop: ManualLoop, fired: list[str]) -> None:
    class SteppedClock(ManualClock):
        step_ms = 0

        def now_ms(self) -> int:
            return super().now_ms() + self.step_ms

    loop.clock = clock = SteppedClock(0)
    timers = LoopTimers(
        cast("AbstractEventLoop", loop),
        clock,
        lambda expired, due_ms: fired.append(expired(due_ms).cause),
    )
    timers.schedule("session", 100, expiry("expiry"))
    timers.schedule("session", 110, expiry("expiry"))
    clock.step_ms = 1_000_000
    clock.advance(100)
    handle = loop.handles.pop()
    handle.callback(*handle.arguments)
    assert fired == []


def test_who_is_called_is_told_the_deadline(loop: ManualLoop) -> None:
    due: list[tuple[str, float]] = []
    timers = LoopTimers(
        cast("AbstractEventLoop", loop),
        loop.clock,
        lambda expired, due_ms: due.append((expired(due_ms).cause, due_ms)),
    )
    timers.schedule("session", 100, expiry("of a"))
    timers.schedule("session", 150, expiry("of a"))
    timers.schedule("join", 120, expiry("of b"))
    timers.schedule("join", 110, expiry("of b"))
    loop.advance(130)
    loop.advance(130)
    assert due == [("of b", 110), ("of a", 150)]
