"""Whether a transactional producer's records may be appended.

A log with the producer's transaction open accepts more of it without asking. Otherwise the
coordinator is asked; see `transactional_writes`.
"""

from collections.abc import Iterator

from ottla.handlers.broker import Broker
from ottla.handlers.transactional_writes import (
    Guards,
    Write,
    add_to_transaction,
    ask_elsewhere,
    is_asked_elsewhere,
    validate_in_transaction,
)
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.hot_produce import ProduceRequest, TopicResult
from ottla.records.batch import HEADER_SIZE, BatchHeader, read_header
from ottla.replication.partition import Partition
from ottla.transactions.transaction import Producer

_ABORTABLE_SINCE = 11
_ADDED_HERE_SINCE = 12

# Clients know none of these in a Produce response; they retry after this one.
_TRY_AGAIN = frozenset(
    {
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
    }
)


class Admission:
    """For one request."""

    __slots__ = (
        "_abortable",
        "_adds",
        "_broker",
        "_guards",
        "_is_elsewhere",
        "_refusal",
        "_transactional_id",
        "refused",
    )

    def __init__(
        self,
        broker: Broker,
        transactional_id: str,
        api_version: int,
        refused: list[TopicResult] | None = None,
    ) -> None:
        """`refused` are the results of topics without write permission."""
        self.refused = refused or []
        self._broker = broker
        self._transactional_id = transactional_id
        self._abortable = api_version >= _ABORTABLE_SINCE
        self._adds = api_version >= _ADDED_HERE_SINCE
        self._is_elsewhere = is_asked_elsewhere(broker, transactional_id, added_here=self._adds)
        self._guards: Guards | None = None
        self._refusal: ApiError | None = None

    def writes_to_ask_for(self, request: ProduceRequest) -> Write | None:
        """The partitions about which the coordinator must be asked before anything is appended.

        Either it adds them to the transaction, or it is on another broker. Without partitions if a
        write of the same producer is already waiting for that.
        """
        if not self._adds and not self._is_elsewhere:
            return None
        producer: Producer | None = None
        topic_partitions = []
        for partition, header in self._transactional(request):
            producer = Producer(header.producer_id, header.producer_epoch)
            if not _is_open(partition, header):
                topic_partitions.append(partition.log.topic_partition)
        if producer is None or (
            not topic_partitions and producer.id not in self._broker.transactions.pending_writes
        ):
            return None
        return Write(self._transactional_id, producer, tuple(topic_partitions))

    async def ask(self, write: Write) -> None:
        """A refusal applies to every batch that the log does not accept without asking."""
        if not write.partitions:
            return
        broker = self._broker
        try:
            if self._is_elsewhere:
                partitions = [
                    broker.replicas.find(*topic_partition) for topic_partition in write.partitions
                ]
                self._guards = await ask_elsewhere(broker, write, partitions, added_here=self._adds)
            else:
                await add_to_transaction(broker, write)
        except ApiError as error:
            self._refusal = error.with_traceback(None)

    def end(self) -> None:
        """Everything admitted has been appended."""
        if self._guards is not None:
            self._guards.release()

    def validate(self, partition: Partition, header: BatchHeader) -> None:
        if _is_open(partition, header):
            return
        producer = Producer(header.producer_id, header.producer_epoch)
        write = Write(self._transactional_id, producer, (partition.log.topic_partition,))
        try:
            if self._refusal is not None:
                raise ApiError(self._refusal.code, self._refusal.message)
            if self._guards is not None and partition in self._guards:
                self._guards.validate(partition, abortable=self._abortable)
                return
            validate_in_transaction(
                self._broker, write, abortable=self._abortable, added_here=self._adds
            )
        except ApiError as error:
            raise self._for_produce(error) from error

    def _transactional(self, request: ProduceRequest) -> Iterator[tuple[Partition, BatchHeader]]:
        """Batches that are malformed, or not for this broker, are rejected later."""
        for topic, topic_id, produced in request.topics:
            for item in produced:
                records = item.records
                if records is None or len(records) < HEADER_SIZE:
                    continue
                header = read_header(records)
                if not header.is_transactional:
                    continue
                try:
                    yield self._broker.replicas.find(topic_id or topic, item.partition), header
                except ApiError:
                    continue

    def _for_produce(self, error: ApiError) -> ApiError:
        code = error.code
        if code is ErrorCode.transaction_abortable and not self._abortable:
            return ApiError(ErrorCode.invalid_txn_state, error.message)
        if code in _TRY_AGAIN or (code is ErrorCode.concurrent_transactions and not self._adds):
            return ApiError(ErrorCode.not_enough_replicas, error.message)
        if code is ErrorCode.producer_fenced:
            return ApiError(ErrorCode.invalid_producer_epoch, error.message)
        return error


def _is_open(partition: Partition, header: BatchHeader) -> bool:
    entry = partition.log.producers.get(header.producer_id)
    return (
        entry is not None
        and entry.transaction_first_offset >= 0
        and entry.producer_epoch == header.producer_epoch
    )
