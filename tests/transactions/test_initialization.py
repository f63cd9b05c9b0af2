from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from tests.transactions.kit import FIRST_ID, START_MS, T0, Coordinator, recorded, refusal

from ottla.protocol.errors import ErrorCode
from ottla.transactions.config import TransactionConfig
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import NO_TIMEOUT_MS, Producer, Transaction

LAST_EPOCH = 2**15 - 2


@pytest.fixture
def coordinator() -> Coordinator:
    return Coordinator()


def held(response: InitProducerIdResponse) -> Producer:
    assert response.error_code is ErrorCode.none
    return Producer(response.producer_id, response.producer_epoch)


def empty(producer: Producer, **changes: Any) -> Transaction:
    created = Transaction(
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        timeout_ms=60_000,
        state=TransactionState.EMPTY,
        updated_ms=START_MS,
    )
    return replace(created, **changes)


def at_last_epoch(coordinator: Coordinator) -> Producer:
    """A transactional id whose producer has used up its epochs."""
    producer = Producer(5, LAST_EPOCH)
    coordinator.log.append(TransactionRecord("x", empty(producer)))
    coordinator.reload()
    return producer


def test_a_new_transactional_id_gets_a_new_producer_id(coordinator: Coordinator) -> None:
    assert held(coordinator.init()) == (FIRST_ID, 0)
    assert recorded(coordinator.last_records) == [empty(Producer(FIRST_ID, 0))]


def test_ids_are_not_asked_for_in_vain(coordinator: Coordinator) -> None:
    coordinator.init()
    coordinator.init()
    assert held(coordinator.init("y")) == (FIRST_ID + 1, 0)


def test_the_next_producer_gets_the_next_epoch(coordinator: Coordinator) -> None:
    coordinator.init()
    assert held(coordinator.init(timeout_ms=5_000)) == (FIRST_ID, 1)
    assert recorded(coordinator.last_records) == [empty(Producer(FIRST_ID, 1), timeout_ms=5_000)]


def test_what_is_open_is_aborted_first(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    coordinator.add(first, T0)

    assert coordinator.init().error_code is ErrorCode.concurrent_transactions
    (prepared,) = recorded(coordinator.last_records)
    assert prepared.state is TransactionState.PREPARE_ABORT
    assert (prepared.producer_epoch, prepared.partitions) == (1, frozenset({T0}))
    assert coordinator.decided == ["x"]

    assert refusal(coordinator.init) is ErrorCode.concurrent_transactions
    written = coordinator.write_markers()
    assert (written.producer_epoch, written.committed) == (1, False)
    assert held(coordinator.init()) == (FIRST_ID, 2)
    assert refusal(lambda: coordinator.end(first)) is ErrorCode.producer_fenced


def test_the_producer_itself_can_ask_for_a_new_epoch(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    second = held(coordinator.init(expected=first))
    assert second == (FIRST_ID, 1)
    assert recorded(coordinator.last_records) == [empty(second, previous_producer_id=FIRST_ID)]


def test_it_gets_the_same_when_it_asks_again(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    second = held(coordinator.init(expected=first))
    assert held(coordinator.init(expected=first)) == second
    coordinator.reload()
    assert held(coordinator.init(expected=first)) == second


def test_who_was_fenced_gets_no_new_epoch(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    coordinator.producer()
    asking = [first, Producer(first.id + 1, 0), Producer(first.id, 7)]
    for expected in asking:
        code = refusal(partial(coordinator.init, expected=expected))
        assert code is ErrorCode.producer_fenced


def test_who_was_fenced_cannot_abort_what_its_successor_has_open(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    second = coordinator.producer()
    coordinator.add(second, T0)
    assert refusal(lambda: coordinator.init(expected=first)) is ErrorCode.producer_fenced
    assert coordinator.state() is TransactionState.ONGOING


def test_the_producer_itself_can_begin_anew_from_an_open_transaction(
    coordinator: Coordinator,
) -> None:
    first = coordinator.producer()
    coordinator.add(first, T0)
    response = coordinator.init(expected=first)
    assert response.error_code is ErrorCode.concurrent_transactions
    coordinator.write_markers()
    assert held(coordinator.init(expected=first)) == (FIRST_ID, 1)


def test_half_of_an_expected_producer_is_refused(coordinator: Coordinator) -> None:
    for expected in (Producer(3, -1), Producer(-1, 3)):
        code = refusal(partial(coordinator.init, expected=expected))
        assert code is ErrorCode.invalid_request


def test_after_the_last_epoch_comes_a_new_id(coordinator: Coordinator) -> None:
    at_last_epoch(coordinator)
    assert held(coordinator.init()) == (FIRST_ID, 0)
    assert recorded(coordinator.last_records) == [empty(Producer(FIRST_ID, 0))]


def test_the_producer_itself_gets_a_new_id_after_the_last_epoch(coordinator: Coordinator) -> None:
    last = at_last_epoch(coordinator)
    assert held(coordinator.init(expected=last)) == (FIRST_ID, 0)
    assert held(coordinator.init(expected=last)) == (FIRST_ID, 0)
    assert recorded(coordinator.last_records)[0].previous_producer_id == 5


def test_fencing_at_the_last_epoch_leads_to_a_new_id(coordinator: Coordinator) -> None:
    last = at_last_epoch(coordinator)
    coordinator.add(last, T0)
    coordinator.init(expected=last)
    assert coordinator.write_markers().producer_epoch == LAST_EPOCH + 1
    assert held(coordinator.init(expected=last)) == (FIRST_ID, 0)


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_timeouts_are_bounded(coordinator: Coordinator, timeout_ms: int) -> None:
    code = refusal(lambda: coordinator.init(timeout_ms=timeout_ms))
    assert code is ErrorCode.invalid_transaction_timeout


def test_an_empty_transactional_id_is_refused(coordinator: Coordinator) -> None:
    assert refusal(lambda: coordinator.init("")) is ErrorCode.invalid_request


def test_two_phase_commit_can_be_turned_off() -> None:
    coordinator = Coordinator(TransactionConfig(two_phase_commit=False))
    code = refusal(lambda: coordinator.init(two_phase=True))
    assert code is ErrorCode.transactional_id_authorization_failed


def test_a_transaction_of_two_phase_commit_never_times_out() -> None:
    coordinator = Coordinator(TransactionConfig(two_phase_commit=True))
    producer = held(coordinator.init(two_phase=True, timeout_ms=-1))
    assert coordinator.transaction().timeout_ms == NO_TIMEOUT_MS
    coordinator.add(producer, T0)
    assert coordinator.advance(30 * 24 * 3_600_000) == []
    assert coordinator.state() is TransactionState.ONGOING


def test_what_was_prepared_can_be_kept(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    coordinator.add(first, T0, version=2)

    response = coordinator.init(keep=True)
    second = held(response)
    assert second == (FIRST_ID, 1)
    ongoing = Producer(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)
    assert ongoing == first
    (kept,) = recorded(coordinator.last_records)
    assert (kept.state, kept.partitions) == (TransactionState.ONGOING, frozenset({T0}))

    third = held(coordinator.init(keep=True))
    assert third == (FIRST_ID, 2)
    for fenced in (first, second):
        code = refusal(partial(coordinator.end, fenced, version=2))
        assert code is ErrorCode.producer_fenced
    ended = coordinator.end(third, version=2)
    assert (ended.producer_id, ended.producer_epoch) == (FIRST_ID, 3)
    assert coordinator.write_markers().producer_epoch == first.epoch + 1
    coordinator.add(Producer(FIRST_ID, 3), T0, version=2)


def test_what_was_kept_can_only_be_ended(coordinator: Coordinator) -> None:
    coordinator.add(coordinator.producer(), T0, version=2)
    second = held(coordinator.init(keep=True))
    code = refusal(lambda: coordinator.add(second, T0, version=2))
    assert code is ErrorCode.invalid_txn_state
    assert coordinator.verify(second, T0) == [ErrorCode.transaction_abortable]


def test_what_was_kept_is_aborted_by_who_does_not_keep_it(coordinator: Coordinator) -> None:
    first = coordinator.producer()
    coordinator.add(first, T0, version=2)
    held(coordinator.init(keep=True))
    assert coordinator.init().error_code is ErrorCode.concurrent_transactions
    assert coordinator.write_markers().producer_epoch == first.epoch + 1
    assert held(coordinator.init()) == (FIRST_ID, 3)


def test_without_anything_open_there_is_nothing_to_keep(coordinator: Coordinator) -> None:
    response = coordinator.init(keep=True)
    assert held(response) == (FIRST_ID, 0)
    assert (response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch) == (-1, -1)
