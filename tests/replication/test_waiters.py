from functools import partial

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.waiters import OffsetWaiters


def test_waiters_are_released_up_to_the_offset_that_was_reached() -> None:
    waiters = OffsetWaiters()
    released: list[str] = []

    def release(name: str, _error: ApiError | None) -> None:
        released.append(name)

    for offset, name in ((5, "a"), (7, "b"), (9, "c")):
        waiters.add(offset, partial(release, name))
    waiters.advance(7)
    assert released == ["a", "b"]
    assert len(waiters) == 1


def test_a_waiter_for_an_older_offset_is_released_with_the_newest() -> None:
    waiters = OffsetWaiters()
    released: list[str] = []
    waiters.add(9, lambda error: released.append("new"))
    waiters.add(3, lambda error: released.append("retry"))
    waiters.advance(8)
    assert released == []
    waiters.advance(9)
    assert released == ["new", "retry"]


def test_failing_answers_everyone_with_the_error() -> None:
    waiters = OffsetWaiters()
    outcomes: list[ApiError | None] = []
    waiters.add(1, outcomes.append)
    waiters.add(2, outcomes.append)
    error = ApiError(ErrorCode.not_leader_or_follower)
    waiters.fail(error)
    assert outcomes == [error, error]
    assert len(waiters) == 0
