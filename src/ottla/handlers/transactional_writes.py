"""What a partition's leader asks the transaction coordinator before it takes a write.

A write is taken when its partition is in the open transaction of its producer. An older client has
put it there; for a newer one the leader does (KIP-890). Between that look at the coordinator's
state and the append nothing else can happen, for both are in one turn of the loop: so no record
comes in behind the marker that ends its transaction.

`transaction.partition.verification.enable = false` spares older clients the question.
"""

from typing import NamedTuple

from ottla.handlers.broker import Broker
from ottla.handlers.transaction_calls import call
from ottla.machine.result import Deferred
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.transactions.config import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION, Producer


class Write(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]


async def add_to_transaction(broker: Broker, write: Write) -> None:
    """ApiError when the coordinator refuses it."""
    await call(
        broker,
        write.transactional_id,
        lambda machine, now_ms, _: machine.add_partitions(
            write.transactional_id,
            write.producer,
            write.partitions,
            now_ms,
            client_version=EPOCH_PER_TRANSACTION_VERSION,
        ),
    )


def validate_in_transaction(
    broker: Broker, write: Write, *, abortable: bool, added_here: bool
) -> None:
    """`abortable`: the client knows TRANSACTION_ABORTABLE, which is INVALID_TXN_STATE for others.

    `added_here`: the client is a newer one, which leaves it to the leader to add the partitions.

    The state that is looked at may not be committed yet. If it never is, the coordinator that
    comes next knows of no such transaction, and its producer was not told that it has one.
    """
    if not added_here and not _is_verification_enabled(broker):
        return
    machine = broker.transactions.find(write.transactional_id).machine
    verified = machine.verify_partitions(write.transactional_id, write.producer, write.partitions)
    assert not isinstance(verified.response, Deferred), "a look at the state does not wait"
    for partition, code in verified.response.items():
        if code is not ErrorCode.none:
            raise ApiError(
                code if abortable else ErrorCode.invalid_txn_state,
                f"{partition} is not in the open transaction of {write.transactional_id}",
            )


def _is_verification_enabled(broker: Broker) -> bool:
    return broker.configs.broker_values()[TRANSACTION_PARTITION_VERIFICATION_ENABLE]
