"""How transactions end: EndTxn, timeouts, and writing markers.

The record of a PREPARE state decides. From then on the transaction ends that way, and what remains
is to write a marker to each of its partitions: `markers_of` returns them, and `complete` records
that all are written. The driver repeats both until the transaction is complete; a coordinator that
loads such a record resumes where the previous one stopped.
"""

from typing import TypeVar

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.times import NO_THROTTLE
from ottla.protocol.topics import TopicPartition
from ottla.transactions.producer_ids import required
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import DECIDED, TransactionState
from ottla.transactions.store import TransactionStore, completing, fenced, not_mapped
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION, Producer, Transaction

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class PendingMarkers:
    """The same marker goes to each of the partitions."""

    producer_id: int
    producer_epoch: int
    committed: bool
    client_version: int
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class CompleteTransaction:
    """The effect of a decision: write the markers of `markers_of`, then submit `complete`."""

    transactional_id: str


def decision(response: Response, transactional_id: str, following: Transaction) -> Result[Response]:
    """The record that decides how a transaction ends, and its effect."""
    assert following.state in DECIDED
    record = TransactionRecord(transactional_id, following)
    return Result(response, (record,), effects=(CompleteTransaction(transactional_id),))


def end_txn(
    store: TransactionStore,
    request: EndTxnRequest,
    *,
    client_version: int,
    now_ms: int,
    new_producer_id: int | None,
) -> Result[EndTxnResponse]:
    transactional_id, commit = request.transactional_id, request.committed
    transaction = store.known(transactional_id)
    producer = Producer(request.producer_id, request.producer_epoch)
    raises_epoch = client_version >= EPOCH_PER_TRANSACTION_VERSION
    if raises_epoch and transaction.was_held_by(producer):
        if transaction.state is TransactionState.EMPTY:
            raise fenced(producer, transaction)  # Its newest epoch came from InitProducerId.
        return _repeated(transaction, commit=commit)
    _validate_holder(transactional_id, transaction, producer)
    match transaction.state:
        case TransactionState.ONGOING:
            pass
        case TransactionState.PREPARE_COMMIT | TransactionState.PREPARE_ABORT:
            if raises_epoch:
                raise completing()  # The end of the next transaction, which has not begun.
            return _repeated(transaction, commit=commit)
        case TransactionState.COMPLETE_COMMIT | TransactionState.COMPLETE_ABORT if not raises_epoch:
            return _repeated(transaction, commit=commit)
        case state if commit or not raises_epoch:
            raise _invalid(state, commit=commit)
    new_id = required(new_producer_id) if raises_epoch and producer.exhausted else None
    following = transaction.ended_by_client(
        commit=commit, client_version=client_version, new_id=new_id, now_ms=now_ms
    )
    return decision(_response(following.client), transactional_id, following)


def abort_late(store: TransactionStore, transactional_id: str, now_ms: int) -> Result[None]:
    """An open transaction has timed out.

    The producer is fenced: whatever it still sends belongs to the aborted transaction.
    """
    following = store.known(transactional_id).fenced(by_itself=False, now_ms=now_ms)
    return decision(None, transactional_id, following)


def markers_of(store: TransactionStore, transactional_id: str) -> PendingMarkers | None:
    """None if there is nothing left to write."""
    transaction = store.get(transactional_id)
    if transaction is None or transaction.state not in DECIDED:
        return None
    return PendingMarkers(
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.is_commit,
        transaction.client_version,
        transaction.partitions,
    )


def complete(
    store: TransactionStore, transactional_id: str, written: PendingMarkers, now_ms: int
) -> Result[None]:
    """All markers are written. No effect if that was already recorded."""
    if markers_of(store, transactional_id) != written:
        return Result(None)
    transaction = store.known(transactional_id)
    return Result(None, (TransactionRecord(transactional_id, transaction.completed(now_ms)),))


def _validate_holder(transactional_id: str, transaction: Transaction, producer: Producer) -> None:
    if transaction.client.id != producer.id:
        raise not_mapped(transactional_id, producer.id)
    if transaction.client.epoch != producer.epoch:
        raise fenced(producer, transaction)


def _repeated(transaction: Transaction, *, commit: bool) -> Result[EndTxnResponse]:
    """The producer missed the response to its request, or has not received it yet."""
    if transaction.is_commit != commit:
        raise _invalid(transaction.state, commit=commit)
    if transaction.state in DECIDED:
        raise completing()
    return Result(_response(transaction.client))


def _invalid(state: TransactionState, *, commit: bool) -> ApiError:
    verb = "committed" if commit else "aborted"
    return ApiError(
        ErrorCode.invalid_txn_state,
        f"the transaction cannot be {verb}: its state is {state.kafka_name}",
    )


def _response(client: Producer) -> EndTxnResponse:
    return EndTxnResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id=ProducerId(client.id),
        producer_epoch=i16(client.epoch),
    )
