"""The state of a transactional id, and its changes.

A `Transaction` is immutable: each method returns the next one, which becomes the state when its
record is replayed.

Producers are distinguished by id and epoch. There are two such pairs here:

    producer_id, producer_epoch    what the open transaction's records bear; once its end is
                                   decided, what its markers bear
    client                         what the newest producer holds, and uses in its next request

They differ after an end that exhausted the epochs (a new id follows), and while a restarted
producer keeps what an earlier one prepared (KIP-939). Then the second pair is in `next_producer_id`
and `next_producer_epoch`.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from ottla.protocol.entities import entity
from ottla.protocol.topics import TopicPartition
from ottla.transactions.state import DECIDED, IDLE, VALID_NEXT, TransactionState

NO_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 2**15 - 1
CLIENT_EPOCH_MAX: Final = EPOCH_MAX - 1  # The last one is reserved for the markers.
NO_TIMEOUT_MS: Final = 2**31 - 1  # For a transaction that only its owner ends (KIP-939).
EPOCH_PER_TRANSACTION_VERSION: Final = 2  # From here on every end raises the epoch (KIP-890).


class Producer(NamedTuple):
    id: int
    epoch: int

    @property
    def exhausted(self) -> bool:
        return self.epoch >= CLIENT_EPOCH_MAX

    @property
    def bumped(self) -> "Producer":
        return Producer(self.id, self.epoch + 1)


@entity
class Transaction:
    producer_id: int
    producer_epoch: int
    # The id that the holder of `client` had before it requested this epoch for itself, to recognize
    # a repeated request. No one else may be mistaken for it, so otherwise it is -1.
    previous_producer_id: int = NO_ID
    next_producer_id: int = NO_ID
    next_producer_epoch: int = NO_EPOCH  # -1 with a next producer id means 0.
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition] = frozenset()
    updated_ms: int
    started_ms: int = NO_TIME
    client_version: int = 0  # Transaction version: 2 if the producer supports KIP-890.

    @property
    def client(self) -> Producer:
        if self.next_producer_id != NO_ID:
            return Producer(self.next_producer_id, max(self.next_producer_epoch, 0))
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_kept(self) -> bool:
        """A producer has taken over what an earlier one prepared, and can only end it."""
        return self.state is TransactionState.ONGOING and self.next_producer_id != NO_ID

    @property
    def is_commit(self) -> bool:
        return self.state in {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}

    @property
    def is_spent(self) -> bool:
        """It was a two-phase transaction, has ended, and is the only one of its producer so far."""
        is_complete = self.state in IDLE and self.state is not TransactionState.EMPTY
        return (
            is_complete
            and self.timeout_ms == NO_TIMEOUT_MS
            and self.client_version >= EPOCH_PER_TRANSACTION_VERSION
            and self.producer_epoch == 1
        )

    @property
    def deadline_ms(self) -> int | None:
        """When an open transaction is aborted."""
        if self.state is not TransactionState.ONGOING or self.timeout_ms == NO_TIMEOUT_MS:
            return None
        return self.started_ms + self.timeout_ms

    def was_held_by(self, producer: Producer) -> bool:
        """Whether the holder of `client` was this producer before it got its newest epoch."""
        if self.previous_producer_id == NO_ID or self.previous_producer_id != producer.id:
            return False
        if self.client.id == producer.id:
            return self.client.epoch == producer.epoch + 1
        return producer.exhausted and self.client.epoch == 0

    def initialized(
        self, client: Producer, *, previous_id: int, timeout_ms: int, now_ms: int
    ) -> "Transaction":
        return self._next(
            TransactionState.EMPTY,
            producer_id=client.id,
            producer_epoch=client.epoch,
            previous_producer_id=previous_id,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIME,
            updated_ms=now_ms,
            client_version=0,
        )

    def kept_for(self, client: Producer, *, timeout_ms: int, now_ms: int) -> "Transaction":
        return self._next(
            TransactionState.ONGOING,
            previous_producer_id=NO_ID,
            **_next_ids(client),
            timeout_ms=timeout_ms,
            updated_ms=now_ms,
        )

    def with_partitions(
        self, partitions: Iterable[TopicPartition], *, client_version: int, now_ms: int
    ) -> "Transaction":
        is_open = self.state is TransactionState.ONGOING
        return self._next(
            TransactionState.ONGOING,
            previous_producer_id=NO_ID,
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def ended_by_client(
        self, *, commit: bool, client_version: int, new_id: int | None, now_ms: int
    ) -> "Transaction":
        """`new_id` is for a client with an exhausted epoch, in the newer version."""
        client = self.client
        if client_version < EPOCH_PER_TRANSACTION_VERSION:
            return self._decided(
                commit=commit, after=client, previous_id=NO_ID, version=0, now_ms=now_ms
            )
        after = client.bumped if new_id is None else Producer(new_id, 0)
        return self._decided(
            commit=commit,
            after=after,
            previous_id=client.id,
            version=client_version,
            now_ms=now_ms,
        )

    def fenced(self, *, by_itself: bool, now_ms: int) -> "Transaction":
        """Abort, so that no further request of its current client is accepted.

        `by_itself`: the client has asked for a new epoch, and will ask again.
        """
        return self._decided(
            commit=False,
            after=self.client.bumped,
            previous_id=self.client.id if by_itself else NO_ID,
            version=self.client_version,
            now_ms=now_ms,
        )

    def completed(self, now_ms: int) -> "Transaction":
        assert self.state in DECIDED
        client = self.client
        return self._next(
            TransactionState.COMPLETE_COMMIT if self.is_commit else TransactionState.COMPLETE_ABORT,
            producer_id=client.id,
            producer_epoch=client.epoch,
            next_producer_id=NO_ID,
            next_producer_epoch=NO_EPOCH,
            partitions=frozenset(),
            updated_ms=now_ms,
        )

    def _decided(
        self, *, commit: bool, after: Producer, previous_id: int, version: int, now_ms: int
    ) -> "Transaction":
        """The markers have a higher epoch than the records, unless the client keeps its own."""
        raised = after != (self.producer_id, self.producer_epoch)
        marker = Producer(self.producer_id, self.producer_epoch + raised)
        is_open = self.state is TransactionState.ONGOING
        return self._next(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            producer_epoch=marker.epoch,
            previous_producer_id=previous_id,
            **_next_ids(None if after == marker else after),
            started_ms=self.started_ms if is_open else now_ms,
            updated_ms=now_ms,
            client_version=version,
        )

    def _next(self, state: TransactionState, **changes: object) -> "Transaction":
        assert state in VALID_NEXT[self.state], f"from {self.state} to {state}"
        return replace(self, state=state, **changes)  # type: ignore[arg-type]


def _next_ids(client: Producer | None) -> dict[str, int]:
    if client is None:
        return {"next_producer_id": NO_ID, "next_producer_epoch": NO_EPOCH}
    return {"next_producer_id": client.id, "next_producer_epoch": client.epoch or NO_EPOCH}
