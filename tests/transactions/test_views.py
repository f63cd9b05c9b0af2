import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from kio.schema.describe_transactions.v0.response import TopicData, TransactionState
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.types import ProducerId, TopicName, TransactionalId
from kio.static.primitive import TZAware, i16, i32
from tests.transactions.kit import START_MS, T0, T1, Coordinator

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def coordinator() -> Coordinator:
    """`x` has a transaction open for 10 ms, `y` has committed one, `z` has begun none."""
    coordinator = Coordinator()
    y = coordinator.producer("y")
    coordinator.add(y, T0, transactional_id="y")
    coordinator.end(y, transactional_id="y")
    coordinator.write_markers("y")
    coordinator.producer("z")
    coordinator.add(coordinator.producer("x"), T1, T0)
    coordinator.advance(10)
    return coordinator


def describe(coordinator: Coordinator, transactional_id: str) -> TransactionState:
    return coordinator.run(lambda _: coordinator.machine.describe(transactional_id))


def listed(
    coordinator: Coordinator, matches: Callable[[str], bool] = lambda _: True, **filters: Any
) -> dict[str, tuple[int, str]]:
    request = ListTransactionsRequest(**filters)
    found = coordinator.run(
        lambda now_ms: coordinator.machine.list_transactions(request, matches, now_ms)
    )
    return {
        transaction.transactional_id: (transaction.producer_id, transaction.transaction_state)
        for transaction in found
    }


def test_an_open_transaction_is_described(coordinator: Coordinator) -> None:
    assert describe(coordinator, "x") == TransactionState(
        error_code=ErrorCode.none,
        transactional_id=TransactionalId("x"),
        transaction_state="Ongoing",
        transaction_timeout=milliseconds(60_000),
        transaction_start_time=TZAware.parse(EPOCH + dt.timedelta(milliseconds=START_MS)),
        producer_id=ProducerId(102),
        producer_epoch=i16(0),
        topics=(TopicData(topic=TopicName("t"), partitions=(i32(0), i32(1))),),
    )


def test_one_that_was_never_opened_has_no_time(coordinator: Coordinator) -> None:
    described = describe(coordinator, "z")
    assert described.transaction_state == "Empty"
    assert described.transaction_start_time == EPOCH - dt.timedelta(milliseconds=1)
    assert described.topics == ()


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", ErrorCode.invalid_request), ("unknown", ErrorCode.transactional_id_not_found)],
)
def test_others_are_not_found(
    coordinator: Coordinator, transactional_id: str, code: ErrorCode
) -> None:
    described = describe(coordinator, transactional_id)
    assert (described.error_code, described.transactional_id) == (code, transactional_id)


def test_all_are_listed(coordinator: Coordinator) -> None:
    assert listed(coordinator) == {
        "x": (102, "Ongoing"),
        "y": (100, "CompleteCommit"),
        "z": (101, "Empty"),
    }


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"state_filters": ("Ongoing", "Empty")}, {"x", "z"}),
        ({"state_filters": ("Nonsense",)}, set()),
        ({"producer_id_filters": (100, 999)}, {"y"}),
        ({"duration_filter": 9}, {"x", "y"}),
        ({"duration_filter": 10}, set()),
        ({"state_filters": ("Ongoing",), "duration_filter": 0}, {"x"}),
    ],
)
def test_filters(coordinator: Coordinator, filters: dict[str, Any], names: set[str]) -> None:
    assert set(listed(coordinator, **filters)) == names


def test_a_pattern_filters_by_transactional_id(coordinator: Coordinator) -> None:
    assert set(listed(coordinator, lambda name: name > "x")) == {"y", "z"}
