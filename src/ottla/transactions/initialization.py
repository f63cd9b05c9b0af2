"""InitProducerId for a transactional id.

The newest producer of a transactional id is the only one: its predecessor is fenced by a higher
epoch, and what it left open is aborted. That requires writing markers, so the new producer gets
CONCURRENT_TRANSACTIONS until it is done, and asks again.

A producer that names the id and epoch that it holds (KIP-360) asks for a new epoch for itself. It
gets one only if it is still the newest; if it asks again because the response was lost, it gets the
same answer again.

With `keep_prepared_txn` (KIP-939) an open transaction stays open. The producer gets its own epoch,
with which it can only end that transaction, and is told the transaction's id and epoch.
"""

from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE, in_milliseconds
from ottla.transactions.config import TransactionConfig
from ottla.transactions.ending import decision
from ottla.transactions.producer_ids import required
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import TransactionState
from ottla.transactions.store import (
    TransactionStore,
    fenced,
    validate_not_completing,
)
from ottla.transactions.transaction import (
    CLIENT_EPOCH_MAX,
    NO_EPOCH,
    NO_ID,
    NO_TIMEOUT_MS,
    Producer,
    Transaction,
)

NO_PRODUCER = Producer(NO_ID, NO_EPOCH)


class Initialization:
    def __init__(self, store: TransactionStore, config: TransactionConfig) -> None:
        self._store = store
        self._config = config

    def init_producer_id(
        self, request: InitProducerIdRequest, now_ms: int, new_producer_id: int | None
    ) -> Result[InitProducerIdResponse]:
        transactional_id = request.transactional_id
        if not transactional_id:
            raise ApiError(ErrorCode.invalid_request, "the transactional id is empty")
        expected = _expected(request)
        timeout_ms = self._timeout_ms(request)
        transaction = self._store.get(transactional_id)
        if transaction is None:
            following = _first(required(new_producer_id), timeout_ms, now_ms)
            return _result(transactional_id, following)
        validate_not_completing(transaction)
        if transaction.state is TransactionState.ONGOING:
            if request.keep_prepared_txn:
                _validate_newest(transaction, expected)
                client = _next_client(transaction.client, new_producer_id)
                following = transaction.kept_for(client, timeout_ms=timeout_ms, now_ms=now_ms)
                return _result(transactional_id, following)
            return _abort(transactional_id, transaction, expected, now_ms)
        client, previous_id = _successor(transaction, expected, new_producer_id)
        following = transaction.initialized(
            client, previous_id=previous_id, timeout_ms=timeout_ms, now_ms=now_ms
        )
        return _result(transactional_id, following)

    def _timeout_ms(self, request: InitProducerIdRequest) -> int:
        if request.enable2_pc:
            if not self._config.two_phase_commit:
                raise ApiError(
                    ErrorCode.transactional_id_authorization_failed,
                    "two-phase commit is off; see transaction.two.phase.commit.enable",
                )
            return NO_TIMEOUT_MS
        timeout_ms = in_milliseconds(request.transaction_timeout)
        if not 0 < timeout_ms <= self._config.max_timeout_ms:
            raise ApiError(
                ErrorCode.invalid_transaction_timeout,
                f"a timeout of {timeout_ms} ms is not from 1 to transaction.max.timeout.ms, which"
                f" is {self._config.max_timeout_ms}",
            )
        return timeout_ms


def _expected(request: InitProducerIdRequest) -> Producer | None:
    expected = Producer(request.producer_id, request.producer_epoch)
    if expected == NO_PRODUCER:
        return None
    if expected.id < 0 or expected.epoch < 0:
        raise ApiError(ErrorCode.invalid_request, "a producer id and its epoch go together")
    return expected


def _first(producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    return Transaction(
        producer_id=producer_id,
        producer_epoch=0,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        updated_ms=now_ms,
    )


def _validate_newest(transaction: Transaction, expected: Producer | None) -> None:
    if expected is not None and expected != transaction.client:
        raise fenced(expected, transaction)


def _abort(
    transactional_id: str, transaction: Transaction, expected: Producer | None, now_ms: int
) -> Result[InitProducerIdResponse]:
    _validate_newest(transaction, expected)
    following = transaction.fenced(by_itself=expected is not None, now_ms=now_ms)
    response = _response(ErrorCode.concurrent_transactions, NO_PRODUCER)
    return decision(response, transactional_id, following)


def _successor(
    transaction: Transaction, expected: Producer | None, new_producer_id: int | None
) -> tuple[Producer, int]:
    """The producer that follows a transaction that is not open, and its previous id."""
    client = transaction.client
    if expected is None:
        return _next_client(client, new_producer_id), NO_ID
    if expected == client:
        return _next_client(client, new_producer_id), client.id
    if not transaction.was_held_by(expected):
        raise fenced(expected, transaction)
    if client.epoch > CLIENT_EPOCH_MAX:
        return _next_client(client, new_producer_id), client.id
    return client, transaction.previous_producer_id


def _next_client(client: Producer, new_producer_id: int | None) -> Producer:
    return Producer(required(new_producer_id), 0) if client.exhausted else client.bumped


def _result(transactional_id: str, following: Transaction) -> Result[InitProducerIdResponse]:
    ongoing = NO_PRODUCER
    if following.is_kept:
        ongoing = Producer(following.producer_id, following.producer_epoch)
    return Result(
        _response(ErrorCode.none, following.client, ongoing),
        (TransactionRecord(transactional_id, following),),
    )


def _response(
    code: ErrorCode, client: Producer, ongoing: Producer = NO_PRODUCER
) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=code,
        producer_id=ProducerId(client.id),
        producer_epoch=i16(client.epoch),
        ongoing_txn_producer_id=ProducerId(ongoing.id),
        ongoing_txn_producer_epoch=i16(ongoing.epoch),
    )
