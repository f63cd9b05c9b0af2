"""The response to an EndTxn that is repeated, late, or without a transaction.

v5 is KIP-890: every end raises the epoch, so an end with the epoch before is a repetition. With v3,
which librdkafka sends, an end with the same epoch is.
"""

from collections.abc import Callable, Iterator

import pytest
from tests.clients.transaction_requests import TransactionWire
from tests.clients.wire import Wire

from ottla.protocol.errors import ErrorCode
from ottla.transactions.transaction import Producer


@pytest.fixture
def txn(bootstrap: str, new_name: Callable[[], str]) -> Iterator[TransactionWire]:
    with Wire(bootstrap) as wire:
        yield TransactionWire(wire, new_name())


@pytest.fixture
def producer(txn: TransactionWire) -> Producer:
    return txn.producer()


def end(txn: TransactionWire, producer: Producer, *, commit: bool) -> ErrorCode:
    code: ErrorCode = txn.end(producer, commit=commit).error_code
    return code


def ended(txn: TransactionWire, producer: Producer, topic: str, *, commit: bool) -> Producer:
    """A producer whose transaction, with one write, has ended."""
    assert txn.produce(producer, topic, b"value").error_code is ErrorCode.none
    following = txn.committed(producer, commit=commit)
    txn.await_state("CompleteCommit" if commit else "CompleteAbort")
    return following


def ended_as_older_client(
    txn: TransactionWire, producer: Producer, topic: str, *, commit: bool
) -> None:
    assert txn.add(producer, topic, 0) == [ErrorCode.none]
    assert txn.end_as_older_client(producer, commit=commit) is ErrorCode.none
    txn.await_state("CompleteCommit" if commit else "CompleteAbort")


@pytest.mark.parametrize("commit", [True, False])
def test_an_end_with_the_epoch_before_is_a_repetition(
    txn: TransactionWire, producer: Producer, topic: str, commit: bool
) -> None:
    following = ended(txn, producer, topic, commit=commit)
    assert txn.committed(producer, commit=commit) == following
    assert end(txn, producer, commit=not commit) is ErrorCode.invalid_txn_state


@pytest.mark.parametrize("commit", [True, False])
def test_after_init_producer_id_it_is_fenced(
    txn: TransactionWire, producer: Producer, topic: str, commit: bool
) -> None:
    following = ended(txn, producer, topic, commit=commit)
    renewed = txn.init(producer_id=following.id, producer_epoch=following.epoch)
    assert renewed.error_code is ErrorCode.none
    for late in (producer, following):
        for committed in (True, False):
            assert end(txn, late, commit=committed) is ErrorCode.producer_fenced


def test_in_the_next_transaction_it_is_fenced(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    following = ended(txn, producer, topic, commit=True)
    assert txn.produce(following, topic, b"value").error_code is ErrorCode.none
    assert end(txn, producer, commit=True) is ErrorCode.producer_fenced


def test_what_has_not_begun_can_be_aborted_and_not_committed(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    assert end(txn, producer, commit=True) is ErrorCode.invalid_txn_state
    following = ended(txn, producer, topic, commit=True)
    assert end(txn, following, commit=True) is ErrorCode.invalid_txn_state
    assert txn.committed(following, commit=False) == following.bumped


@pytest.mark.parametrize("commit", [True, False])
def test_an_older_client_repeats_with_the_same_epoch(
    txn: TransactionWire, producer: Producer, topic: str, commit: bool
) -> None:
    ended_as_older_client(txn, producer, topic, commit=commit)
    assert txn.end_as_older_client(producer, commit=commit) is ErrorCode.none


def test_an_older_client_cannot_abort_what_nobody_has_begun(
    txn: TransactionWire, producer: Producer, topic: str
) -> None:
    """So librdkafka gives up a producer that aborts after its AddPartitionsToTxn was lost."""
    for commit in (True, False):
        code = txn.end_as_older_client(producer, commit=commit)
        assert code is ErrorCode.invalid_txn_state
    ended_as_older_client(txn, producer, topic, commit=True)
    assert txn.end_as_older_client(producer, commit=False) is ErrorCode.invalid_txn_state
