"""What a partition's leader asks the transaction coordinator before it takes a write.

A write is taken when its partition is in the open transaction of its producer. An older client has
put it there; for a newer one the leader does (KIP-890). Between that look at the coordinator's
state and the append nothing else can happen, for both are in one turn of the loop: so no record
comes in behind the marker that ends its transaction.
"""

from typing import NamedTuple

from ottla.handlers.broker import Broker
from ottla.handlers.transaction_calls import call
from ottla.machine.result import Deferred
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
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


def validate_in_transaction(broker: Broker, write: Write, *, abortable: bool) -> None:
    """`abortable`: the client knows TRANSACTION_ABORTABLE, which is INVALID_TXN_STATE for others.

    The state that is looked at may not be committed yet. If it never is, the coordinator that
    comes next knows of no such transaction, and its producer was not told that it has one.
    """
    machine = broker.transactions.find(write.transactional_id).machine
    verified = machine.verify_partitions(write.transactional_id, write.producer, write.partitions)
    assert not isinstance(verified.response, Deferred), "a look at the state does not wait"
    for partition, code in verified.response.items():
        if code is not ErrorCode.none:
            raise ApiError(
                code if abortable else ErrorCode.invalid_txn_state,
                f"{partition} is not in the open transaction of {write.transactional_id}",
            )
