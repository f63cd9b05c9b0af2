from functools import partial

import pytest
from tests.transactions.kit import START_MS, T0, T1, Coordinator, recorded, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import Producer, Transaction


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


@pytest.fixture
def producer(coordinator: Coordinator) -> Producer:
    return coordinator.producer()


def test_the_first_partition_opens_the_transaction(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.advance(5)
    coordinator.add(producer, T0, version=2)
    assert recorded(coordinator.last_records) == [
        Transaction(
            producer_id=producer.id,
            producer_epoch=0,
            timeout_ms=60_000,
            state=TransactionState.ONGOING,
            partitions=frozenset({T0}),
            started_ms=START_MS + 5,
            updated_ms=START_MS + 5,
            client_version=2,
        )
    ]


def test_more_partitions_do_not_begin_it_anew(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0)
    coordinator.advance(5)
    coordinator.add(producer, T1)
    (added,) = recorded(coordinator.last_records)
    assert added.partitions == {T0, T1}
    assert (added.started_ms, added.updated_ms) == (START_MS, START_MS + 5)


def test_what_is_in_it_is_not_written_again(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T0, T1)
    coordinator.add(producer, T1)
    assert coordinator.last_records == ()


def test_without_partitions_a_transaction_is_open_as_well(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer)
    assert coordinator.state() is TransactionState.ONGOING


@pytest.mark.parametrize(
    ("transactional_id", "producer", "code"),
    [
        ("", Producer(100, 0), ErrorCode.invalid_request),
        ("unknown", Producer(100, 0), ErrorCode.invalid_producer_id_mapping),
        ("x", Producer(101, 0), ErrorCode.invalid_producer_id_mapping),
        ("x", Producer(100, 1), ErrorCode.producer_fenced),
    ],
)
def test_only_the_current_producer_may(
    coordinator: Coordinator, transactional_id: str, producer: Producer, code: ErrorCode
) -> None:
    coordinator.producer()
    for ask in (coordinator.add, coordinator.verify):
        refused = refusal(partial(ask, producer, T0, transactional_id=transactional_id))
        assert refused is code


def test_while_the_last_one_completes_nothing_is_added(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0)
    coordinator.end(producer)
    for ask in (coordinator.add, coordinator.verify):
        code = refusal(partial(ask, producer, T0))
        assert code is ErrorCode.concurrent_transactions


def test_partitions_of_the_last_one_are_not_in_the_next(
    coordinator: Coordinator, producer: Producer
) -> None:
    coordinator.add(producer, T0)
    coordinator.end(producer)
    coordinator.write_markers()
    assert coordinator.verify(producer, T0) == [ErrorCode.transaction_abortable]
    coordinator.add(producer, T1)
    assert coordinator.transaction().partitions == {T1}


def test_each_partition_is_verified(coordinator: Coordinator, producer: Producer) -> None:
    coordinator.add(producer, T1)
    assert coordinator.verify(producer, T0, T1) == [
        ErrorCode.transaction_abortable,
        ErrorCode.none,
    ]
    assert coordinator.last_records == ()
