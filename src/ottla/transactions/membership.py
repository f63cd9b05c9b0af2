"""The partitions of a transaction: AddPartitionsToTxn, AddOffsetsToTxn, and verification.

An older client adds a partition before it writes to it, and the partition's leader verifies that it
did. For a newer one (KIP-890) the leader adds the partition with the first write.
"""

from collections.abc import Collection, Mapping

from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import TransactionState
from ottla.transactions.store import TransactionStore, validate_not_completing
from ottla.transactions.transaction import Producer


def add_partitions(
    store: TransactionStore,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
    *,
    client_version: int,
    now_ms: int,
) -> Result[None]:
    transaction = store.held_by(transactional_id, producer)
    validate_not_completing(transaction)
    if transaction.is_kept:
        raise ApiError(
            ErrorCode.invalid_txn_state,
            "a transaction that was kept prepared can only be committed or aborted",
        )
    if transaction.state is TransactionState.ONGOING and transaction.partitions.issuperset(
        partitions
    ):
        return Result(None)
    following = transaction.with_partitions(
        partitions, client_version=client_version, now_ms=now_ms
    )
    return Result(None, (TransactionRecord(transactional_id, following),))


def verify_partitions(
    store: TransactionStore,
    transactional_id: str,
    producer: Producer,
    partitions: Collection[TopicPartition],
) -> Mapping[TopicPartition, ErrorCode]:
    """NONE for partitions in this producer's open transaction.

    TRANSACTION_ABORTABLE for the others. ApiError for all if the producer is not the current one.
    """
    transaction = store.held_by(transactional_id, producer)
    validate_not_completing(transaction)
    is_open = transaction.state is TransactionState.ONGOING and not transaction.is_kept
    members = transaction.partitions if is_open else frozenset()
    return {
        partition: ErrorCode.none if partition in members else ErrorCode.transaction_abortable
        for partition in partitions
    }
