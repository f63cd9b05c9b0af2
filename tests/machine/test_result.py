from ottla.machine.result import Deferred
from ottla.protocol.errors import ApiError, ErrorCode


def test_waiters_get_the_outcome_in_order() -> None:
    deferred: Deferred[str] = Deferred()
    outcomes: list[tuple[str, str | ApiError]] = []
    deferred.when_settled(lambda outcome: outcomes.append(("first", outcome)))
    deferred.when_settled(lambda outcome: outcomes.append(("second", outcome)))
    assert outcomes == []
    deferred.settle("done")
    assert deferred.settled
    assert outcomes == [("first", "done"), ("second", "done")]


def test_a_late_waiter_gets_it_at_once() -> None:
    deferred: Deferred[str] = Deferred()
    deferred.settle("done")
    outcomes: list[str | ApiError] = []
    deferred.when_settled(outcomes.append)
    assert outcomes == ["done"]


def test_the_first_outcome_stands() -> None:
    deferred: Deferred[str] = Deferred()
    outcomes: list[str | ApiError] = []
    deferred.when_settled(outcomes.append)
    error = ApiError(ErrorCode.rebalance_in_progress)
    deferred.settle(error)
    deferred.settle("too late")
    assert outcomes == [error]
