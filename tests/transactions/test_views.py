import datetime as dt

import pytest
from kio.schema.describe_transactions.v0.response import TopicData, TransactionState
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from tests.transactions.kit import START_MS, T0, T1, Coordinator

from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


@pytest.fixture
def coordinator():
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


def describe(coordinator, transactional_id):
    return coordinator.run(lambda _: coordinator.machine.describe(transactional_id))


def listed(coordinator, matches=lambda _: True, **filters):
    request = ListTransactionsRequest(**filters)
    found = coordinator.run(
        lambda now_ms: coordinator.machine.list_transactions(request, matches, now_ms)
    )
    return {one.transactional_id: (one.producer_id, one.transaction_state) for one in found}


def test_an_open_transaction_is_described(coordinator):
    assert describe(coordinator, "x") == TransactionState(
        error_code=ErrorCode.none,
        transactional_id="x",
        transaction_state="Ongoing",
        transaction_timeout=milliseconds(60_000),
        transaction_start_time=EPOCH + dt.timedelta(milliseconds=START_MS),
        producer_id=102,
        producer_epoch=0,
        topics=(TopicData(topic="t", partitions=(0, 1)),),
    )


def test_one_that_was_never_opened_has_no_time(coordinator):
    described = describe(coordinator, "z")
    assert described.transaction_state == "Empty"
    assert described.transaction_start_time == EPOCH - dt.timedelta(milliseconds=1)
    assert described.topics == ()


@pytest.mark.parametrize(
    ("transactional_id", "code"),
    [("", ErrorCode.invalid_request), ("unknown", ErrorCode.transactional_id_not_found)],
)
def test_others_are_not_found(coordinator, transactional_id, code):
    described = describe(coordinator, transactional_id)
    assert (described.error_code, described.transactional_id) == (code, transactional_id)


def test_all_are_listed(coordinator):
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
def test_filters(coordinator, filters, names):
    assert set(listed(coordinator, **filters)) == names


def test_a_pattern_filters_by_transactional_id(coordinator):
    assert set(listed(coordinator, lambda name: name > "x")) == {"y", "z"}
