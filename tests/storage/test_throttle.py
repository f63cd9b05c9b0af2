from ottla.storage.throttle import Throttle


def test_work_waits_until_it_is_due() -> None:
    pauses: list[float] = []
    now = [1000]
    throttle = Throttle(1000, lambda: now[0], pauses.append)
    throttle.done(500)
    assert pauses == [0.5]
    now[0] += 500
    throttle.done(100)
    assert pauses == [0.5, 0.1]
    now[0] += 60_000
    throttle.done(0)
    assert pauses == [0.5, 0.1, 0.0]


def test_without_a_limit_others_still_get_their_turn() -> None:
    pauses: list[float] = []
    throttle = Throttle(float("inf"), lambda: 5, pauses.append)
    throttle.done(1 << 30)
    assert pauses == [0.0]
