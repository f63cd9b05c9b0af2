"""Records that failed often are handed out fewer at a time, as in Apache Kafka 4.3."""

from tests.groups.share.kit import Leader

from ottla.groups.share.acquisition import AcquiredRange


def fail(leader: Leader, times: int) -> None:
    for _ in range(times):
        leader.acquire("a")
        leader.release("a")


def sizes(leader: Leader) -> list[int]:
    """Acquire until nothing is left; returns the number of records each time."""
    found = []
    while acquired := leader.acquire("b"):
        found.append(sum(part.record_count for part in acquired))
    return found


def test_nothing_is_held_back_before_half_of_the_attempts() -> None:
    for limit, attempts in ((5, 2), (10, 4), (2, 1), (3, 1)):
        leader = Leader(delivery_count_limit=limit)
        leader.append(8)
        fail(leader, attempts)
        assert sizes(leader) == [8]


def test_a_range_is_halved_with_each_attempt() -> None:
    leader = Leader(delivery_count_limit=10)
    leader.append(16)
    fail(leader, 5)
    for expected in ([8, 8], [4] * 4, [2] * 8, [1] * 16):
        assert sizes(leader) == expected
        leader.release("b")


def test_on_the_last_attempt_a_record_comes_alone() -> None:
    leader = Leader(delivery_count_limit=3)
    leader.append(4)
    fail(leader, 1)
    assert sizes(leader) == [4]
    leader.release("b")
    assert sizes(leader) == [1, 1, 1, 1]


def test_nothing_comes_along_with_what_failed_often() -> None:
    leader = Leader(delivery_count_limit=4)
    leader.append(4)
    fail(leader, 2)
    leader.append(4)
    assert leader.acquire("b") == (AcquiredRange(0, 1, 3),)
    assert leader.acquire("b") == (AcquiredRange(2, 3, 3),)
    assert leader.acquire("b") == (AcquiredRange(4, 7, 1),)


def test_what_failed_often_does_not_come_along_with_others() -> None:
    leader = Leader(delivery_count_limit=4)
    leader.append(2)
    leader.append(4)
    first = leader.acquire("a")
    assert first == (AcquiredRange(0, 5, 1),)
    leader.release("a")
    fail(leader, 1)
    leader.append(2)
    assert sizes(leader) == [3, 3, 2]
