"""What a partition's leader asks the transaction coordinator before it takes a write.

A write is accepted if its partition is in its producer's open transaction. An older client has
added it; for a newer one the leader does (KIP-890). No record may be appended behind the marker
that ends its transaction:

    the coordinator is here    between the look at its state and the append nothing else can happen,
                               for both are in one turn of the loop
    it is on another broker    a marker that comes between its answer and the append voids the
                               answer: see `Guards`

`transaction.partition.verification.enable = false` skips the check for older clients.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ottla.coordination.remote_transactions import AskedTransaction
from ottla.handlers.broker import Broker
from ottla.handlers.transaction_calls import COMPLETION_WAIT_S, call
from ottla.machine.result import Deferred
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.replication.partition import Partition
from ottla.transactions.config import TRANSACTION_PARTITION_VERIFICATION_ENABLE
from ottla.transactions.transaction import EPOCH_PER_TRANSACTION_VERSION, Producer


class Write(NamedTuple):
    transactional_id: str
    producer: Producer
    partitions: tuple[TopicPartition, ...]


async def add_to_transaction(
    broker: Broker,
    write: Write,
    *,
    client_version: int = EPOCH_PER_TRANSACTION_VERSION,
    wait_s: float = COMPLETION_WAIT_S,
) -> None:
    """ApiError if the coordinator refuses it."""
    await call(
        broker,
        write.transactional_id,
        lambda machine, now_ms, _: machine.add_partitions(
            write.transactional_id,
            write.producer,
            write.partitions,
            now_ms,
            client_version=client_version,
        ),
        wait_s,
    )


class Guards:
    """What the coordinator on another broker has said about a write, as long as it holds."""

    def __init__(self, write: Write, partitions: Sequence[Partition], *, added_here: bool) -> None:
        producer_id, epoch = write.producer
        voiding_epoch = epoch + 1 if added_here else epoch
        self._guards = {
            partition: partition.transaction_guards.take(producer_id, voiding_epoch)
            for partition in partitions
        }

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._guards

    def validate(self, partition: Partition, *, abortable: bool) -> None:
        """NOT_LEADER_OR_FOLLOWER leaves the transaction alone: the client asks the next leader.

        Ending a transaction because its partition has moved would be wrong, and a client that does
        not know TRANSACTION_ABORTABLE gives up entirely.
        """
        guard = self._guards[partition]
        if guard.is_led_elsewhere:
            raise ApiError(
                ErrorCode.not_leader_or_follower,
                f"{partition.log.topic_partition} has another leader now",
            )
        if not guard.holds:
            raise ApiError(
                ErrorCode.transaction_abortable if abortable else ErrorCode.invalid_txn_state,
                f"the transaction in {partition.log.topic_partition} has ended in the meantime",
            )

    def release(self) -> None:
        for partition, guard in self._guards.items():
            partition.transaction_guards.release(guard)


async def ask_elsewhere(
    broker: Broker, write: Write, partitions: Sequence[Partition], *, added_here: bool
) -> Guards:
    """ApiError if the coordinator, on another broker, refuses it or cannot be reached.

    `partitions` are those of the write. The guards must be released after the append.
    """
    guards = Guards(write, partitions, added_here=added_here)
    transaction = AskedTransaction(write.transactional_id, *write.producer)
    remote = broker.transactions.remote
    try:
        if added_here:
            await remote.add(transaction, write.partitions)
        else:
            await remote.verify(transaction, write.partitions)
    except BaseException:
        guards.release()
        raise
    return guards


def is_asked_elsewhere(broker: Broker, transactional_id: str, *, added_here: bool) -> bool:
    """Whether a coordinator must be asked, and it is on another broker."""
    return broker.transactions.remote.is_elsewhere(transactional_id) and (
        added_here or _is_verification_enabled(broker)
    )


def validate_in_transaction(
    broker: Broker, write: Write, *, abortable: bool, added_here: bool
) -> None:
    """`abortable`: the client knows TRANSACTION_ABORTABLE, which is INVALID_TXN_STATE for others.

    `added_here`: the client is a newer one, which leaves adding the partitions to the leader.

    The state checked here may not be committed yet. If it never is, the next coordinator knows of
    no such transaction, and its producer was not told that it has one.
    """
    if not added_here and not _is_verification_enabled(broker):
        return
    machine = broker.transactions.coordinators.find(write.transactional_id).machine
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
