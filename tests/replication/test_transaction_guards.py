from ottla.replication.transaction_guards import Guard, TransactionGuards


def holds(guard: Guard) -> bool:
    return guard.holds


def test_a_marker_voids_the_guards_of_its_producer() -> None:
    guards = TransactionGuards()
    mine, also_mine, other = guards.take(7, 3), guards.take(7, 3), guards.take(8, 3)
    guards.on_marker(7, 3)
    assert (mine.holds, also_mine.holds, other.holds) == (False, False, True)
    assert not mine.is_led_elsewhere
    guards.release(other)
    assert not guards  # Void guards are forgotten.


def test_a_marker_of_the_transaction_before_voids_nothing() -> None:
    guards = TransactionGuards()
    guard = guards.take(7, 4)
    guards.on_marker(7, 3)
    assert guard.holds
    guards.on_marker(7, 4)
    assert not guard.holds


def test_a_guard_that_is_released_leaves_those_of_the_same_producer() -> None:
    guards = TransactionGuards()
    first, second = guards.take(7, 3), guards.take(7, 3)
    guards.release(first)
    guards.on_marker(8, 0)
    assert holds(second)
    guards.on_marker(7, 3)
    assert not holds(second)
    guards.release(second)
    assert not guards


def test_whoever_leads_no_longer_sees_no_markers() -> None:
    guards = TransactionGuards()
    guard = guards.take(7, 3)
    guards.void_all()
    assert not guard.holds
    assert guard.is_led_elsewhere
    guards.release(guard)
