from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.transactions.kit import T0

from ottla.transactions.state import DECIDED, IDLE, VALID_NEXT, TransactionState
from ottla.transactions.transaction import NO_TIMEOUT_MS, Producer, Transaction


def transaction(state: TransactionState = TransactionState.ONGOING, **changes: Any) -> Transaction:
    created = Transaction(
        producer_id=5,
        producer_epoch=3,
        timeout_ms=60_000,
        state=state,
        partitions=frozenset({T0}) if state is TransactionState.ONGOING else frozenset(),
        updated_ms=7,
        started_ms=6,
    )
    return replace(created, **changes)


def test_every_state_has_its_place_in_the_table() -> None:
    assert set(VALID_NEXT) == set(TransactionState)
    assert not IDLE & DECIDED


@pytest.mark.parametrize(
    ("state", "change"),
    [
        (TransactionState.PREPARE_COMMIT, lambda it: it.fenced(by_itself=False, now_ms=9)),
        (
            TransactionState.PREPARE_ABORT,
            lambda it: it.with_partitions([T0], client_version=0, now_ms=9),
        ),
        (TransactionState.ONGOING, lambda it: it.completed(9)),
        (
            TransactionState.ONGOING,
            lambda it: it.initialized(Producer(5, 4), previous_id=-1, timeout_ms=1, now_ms=9),
        ),
        (
            TransactionState.EMPTY,
            lambda it: it.ended_by_client(commit=True, client_version=2, new_id=None, now_ms=9),
        ),
    ],
)
def test_no_other_transition_is_possible(
    state: TransactionState, change: Callable[[Transaction], object]
) -> None:
    with pytest.raises(AssertionError):
        change(transaction(state))


def test_a_transaction_of_two_phase_commit_has_no_deadline() -> None:
    assert transaction().deadline_ms == 60_006
    assert transaction(timeout_ms=NO_TIMEOUT_MS).deadline_ms is None
    assert transaction(TransactionState.EMPTY).deadline_ms is None


def test_without_a_previous_id_nobody_has_held_it() -> None:
    assert not transaction(producer_epoch=0).was_held_by(Producer(-1, 2**15 - 2))


def test_the_marker_of_an_older_client_bears_the_epoch_of_the_records() -> None:
    ended = transaction().ended_by_client(commit=True, client_version=0, new_id=None, now_ms=9)
    assert (ended.producer_id, ended.producer_epoch) == (5, 3)
    assert ended.client == (5, 3)


def test_the_marker_of_a_newer_client_bears_the_next_epoch() -> None:
    ended = transaction().ended_by_client(commit=True, client_version=2, new_id=None, now_ms=9)
    assert (ended.producer_id, ended.producer_epoch) == (5, 4)
    assert ended.client == (5, 4)
    assert ended.was_held_by(Producer(5, 3))


def test_the_last_epoch_is_left_for_the_marker() -> None:
    last = transaction(producer_epoch=2**15 - 2)
    ended = last.ended_by_client(commit=True, client_version=2, new_id=77, now_ms=9)
    assert (ended.producer_id, ended.producer_epoch) == (5, 2**15 - 1)
    assert ended.client == (77, 0)
    completed = ended.completed(10)
    assert (completed.producer_id, completed.producer_epoch) == (77, 0)
    assert completed.was_held_by(Producer(5, 2**15 - 2))
    assert not completed.was_held_by(Producer(5, 2**15 - 3))


@pytest.mark.parametrize("client_version", [0, 2])
def test_what_was_kept_ends_under_the_id_that_its_records_have(client_version: int) -> None:
    kept = transaction().kept_for(Producer(77, 0), timeout_ms=60_000, now_ms=8)
    assert kept.is_kept
    ended = kept.ended_by_client(commit=True, client_version=client_version, new_id=None, now_ms=9)
    assert (ended.producer_id, ended.producer_epoch) == (5, 4)
    after = (77, 1 if client_version else 0)
    assert ended.client == after
    assert ended.completed(10).client == after
