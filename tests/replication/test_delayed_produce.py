from ottla.protocol.errors import ApiError, ErrorCode
from ottla.replication.delayed_produce import DelayedProduce, DelayedProduces


def test_it_finishes_when_every_append_is_safe() -> None:
    finished: list[str] = []
    produce = DelayedProduce()
    first, second = produce.expect(lambda error: None), produce.expect(lambda error: None)
    produce.start(lambda: finished.append("done"), deadline_ms=100)
    first(None)
    assert finished == []
    second(None)
    assert finished == ["done"]


def test_appends_that_became_safe_before_the_start_are_enough() -> None:
    finished: list[str] = []
    produce = DelayedProduce()
    waiter = produce.expect(lambda error: None)
    waiter(None)
    produce.start(lambda: finished.append("done"), deadline_ms=100)
    assert finished == ["done"]


def test_a_failed_append_is_reported_and_does_not_stop_the_others() -> None:
    failures: list[ErrorCode] = []
    finished: list[str] = []
    produce = DelayedProduce()
    failing = produce.expect(lambda error: failures.append(error.code))
    other = produce.expect(lambda error: failures.append(error.code))
    produce.start(lambda: finished.append("done"), deadline_ms=100)
    failing(ApiError(ErrorCode.not_leader_or_follower))
    other(None)
    assert failures == [ErrorCode.not_leader_or_follower]
    assert finished == ["done"]


def test_the_deadline_fails_what_is_outstanding_and_later_news_is_ignored() -> None:
    failures: list[ErrorCode] = []
    finished: list[str] = []
    produces = DelayedProduces()
    produce = DelayedProduce()
    waiter = produce.expect(lambda error: failures.append(error.code))
    produces.start(produce, lambda: finished.append("done"), deadline_ms=100)
    produces.expire(now_ms=99)
    assert finished == []
    produces.expire(now_ms=100)
    waiter(None)
    assert failures == [ErrorCode.request_timed_out]
    assert finished == ["done"]
    assert len(produces) == 0
