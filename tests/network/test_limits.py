from ottla.network.limits import ConnectionLimits


def test_the_total_comes_first() -> None:
    limits = ConnectionLimits(2, 1, {})
    assert limits.admit("a") is None
    assert limits.admit("a") == "max.connections.per.ip"
    assert limits.admit("b") is None
    assert limits.admit("c") == "max.connections"


def test_a_released_place_can_be_taken_again() -> None:
    limits = ConnectionLimits(1, 1, {})
    for _ in range(3):
        assert limits.admit("a") is None
        assert limits.admit("a") == "max.connections"
        limits.release("a")


def test_an_override_can_be_more_or_less() -> None:
    limits = ConnectionLimits(100, 2, {"more": 3, "none": 0})
    assert [limits.admit("more") for _ in range(4)] == [None] * 3 + ["max.connections.per.ip"]
    assert limits.admit("none") == "max.connections.per.ip"
    assert [limits.admit("other") for _ in range(3)] == [None] * 2 + ["max.connections.per.ip"]
