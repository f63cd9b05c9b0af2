from ottla.storage.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1000
        self.pauses: list[float] = []

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_ms += round(seconds * 1000)


def test_work_waits_until_it_is_due() -> None:
    clock = Clock()
    throttle = Throttle(1000, lambda: clock.now_ms, clock.pause)
    throttle.done(500)
    assert clock.pauses == [0.5]
    throttle.done(100)
    assert clock.pauses == [0.5, 0.1]


def test_small_debts_are_paid_together() -> None:
    clock = Clock()
    throttle = Throttle(10_000, lambda: clock.now_ms, clock.pause)
    for _ in range(9):
        throttle.done(1)
    assert clock.pauses == []
    throttle.done(1)
    assert len(clock.pauses) == 1


def test_without_a_limit_work_rests_as_long_as_it_has_worked() -> None:
    clock = Clock()
    throttle = Throttle(float("inf"), lambda: clock.now_ms, clock.pause)
    throttle.done(1 << 30)
    assert clock.pauses == []
    clock.now_ms += 3
    throttle.done(1)
    assert clock.pauses == [0.003]
    throttle.done(1)
    assert clock.pauses == [0.003]
    clock.now_ms += 60_000
    throttle.done(1)
    assert clock.pauses == [0.003, 0.01]
