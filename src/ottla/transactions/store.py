"""The transactions of one partition of `__transaction_state`: changed only by replay."""

from collections.abc import Iterable, Iterator

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import DECIDED
from ottla.transactions.transaction import Producer, Transaction


class TransactionStore:
    def __init__(self) -> None:
        self._transactions: dict[str, Transaction] = {}

    def __iter__(self) -> Iterator[tuple[str, Transaction]]:
        return iter(self._transactions.items())

    def get(self, transactional_id: str) -> Transaction | None:
        return self._transactions.get(transactional_id)

    def held_by(self, transactional_id: str, producer: Producer) -> Transaction:
        """For a request of this producer. ApiError unless it owns the transactional id."""
        transaction = self.of_id(transactional_id, producer.id)
        if transaction.client.epoch != producer.epoch:
            raise fenced(producer, transaction)
        return transaction

    def of_id(self, transactional_id: str, producer_id: int) -> Transaction:
        transaction = self.known(transactional_id)
        if transaction.client.id != producer_id:
            raise not_mapped(transactional_id, producer_id)
        return transaction

    def known(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise ApiError(ErrorCode.invalid_request, "the transactional id is empty")
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise ApiError(
                ErrorCode.invalid_producer_id_mapping,
                f"the transactional id {transactional_id!r} is not known; it may have expired",
            )
        return transaction

    def replay(self, record: TransactionRecord) -> None:
        if record.transaction is None:
            self._transactions.pop(record.transactional_id, None)
        else:
            self._transactions[record.transactional_id] = record.transaction

    def snapshot(self) -> Iterable[TransactionRecord]:
        return (TransactionRecord(*item) for item in self._transactions.items())


def not_mapped(transactional_id: str, producer_id: int) -> ApiError:
    return ApiError(
        ErrorCode.invalid_producer_id_mapping,
        f"producer {producer_id} is not the one of the transactional id {transactional_id!r}",
    )


def fenced(producer: Producer, transaction: Transaction) -> ApiError:
    return ApiError(
        ErrorCode.producer_fenced,
        f"epoch {producer.epoch} of producer {producer.id} is fenced: {transaction.client.epoch}"
        " is current; another producer has the same transactional id, or the transaction timed out",
    )


def validate_not_completing(transaction: Transaction) -> None:
    if transaction.state in DECIDED:
        raise completing()


def completing() -> ApiError:
    return ApiError(
        ErrorCode.concurrent_transactions, "the transaction before is being completed; try again"
    )
