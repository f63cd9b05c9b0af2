"""The machine of one partition of `__transaction_state`: every operation on its transactions.

A transactional id lives on the partition that `partition_for` returns for it. Operations raise
ApiError if a request is rejected, and ProducerIdNeeded if they must be called again with a new
producer id.

The external work is writing markers. A result that decides how a transaction ends has the effect
`CompleteTransaction`; a machine that is loaded emits it again for every decided transaction it
finds. To perform it, submit `markers_of`, write the markers, and submit `complete`, until that is
committed; all of it may be repeated.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from kio.schema.describe_transactions.v0.response import TransactionState as DescribedTransaction
from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from kio.schema.list_transactions.v2.request import ListTransactionsRequest
from kio.schema.list_transactions.v2.response import TransactionState as ListedTransaction

from ottla.machine.contract import Timers
from ottla.machine.record import UnknownRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.transactions import ending, membership, views
from ottla.transactions.config import TransactionConfig
from ottla.transactions.ending import CompleteTransaction, PendingMarkers
from ottla.transactions.expiry import expire_ids
from ottla.transactions.initialization import Initialization
from ottla.transactions.record import TransactionRecord
from ottla.transactions.state import DECIDED
from ottla.transactions.store import TransactionStore
from ottla.transactions.transaction import Producer, Transaction

_EXPIRE_KEY = "transactions/expire"
_RESUME_KEY = "transactions/resume"


class TransactionMachine:
    """Implements `machine.contract.Machine`."""

    def __init__(
        self,
        *,
        config: TransactionConfig,
        timers: Timers,
    ) -> None:
        self._config = config
        self._timers = timers
        self._store = TransactionStore()
        self._initialization = Initialization(self._store, config)
        self._loaded = False

    # Machine.

    def states(self) -> Iterator[str]:
        """The states of all transactional ids, as ListTransactions names them."""
        return (transaction.state.kafka_name for _, transaction in self._store)

    def replay(self, record: object, _: int) -> None:
        if isinstance(record, UnknownRecord):
            return
        assert isinstance(record, TransactionRecord), f"not a record of a transaction: {record}"
        self._store.replay(record)
        if self._loaded:
            self._follow(record.transactional_id, record.transaction)

    def snapshot(self) -> Iterable[object]:
        return self._store.snapshot()

    def on_loaded(self, now_ms: int) -> None:
        self._loaded = True
        for transactional_id, transaction in self._store:
            self._follow(transactional_id, transaction)
        self._schedule_expiry(now_ms + self._config.remove_expired_interval_ms)
        self._timers.schedule(_RESUME_KEY, now_ms, self._resume)

    def _follow(self, transactional_id: str, transaction: Transaction | None) -> None:
        """Timers follow from the state."""
        key = f"transaction/{transactional_id}"
        deadline_ms = None if transaction is None else transaction.deadline_ms
        if deadline_ms is None:
            self._timers.cancel(key)
        else:
            self._timers.schedule(
                key,
                deadline_ms,
                lambda now_ms: ending.abort_late(self._store, transactional_id, now_ms),
            )

    def _resume(self, _: int) -> Result[None]:
        """Emit the effects of decided transactions that may be incomplete."""
        undone = [id_ for id_, transaction in self._store if transaction.state in DECIDED]
        return Result(None, effects=tuple(map(CompleteTransaction, undone)))

    def _schedule_expiry(self, deadline_ms: int) -> None:
        self._timers.schedule(_EXPIRE_KEY, deadline_ms, self._expire)

    def _expire(self, now_ms: int) -> Result[None]:
        records, is_all = expire_ids(self._store, self._config, now_ms)
        interval_ms = self._config.remove_expired_interval_ms if is_all else 0
        self._schedule_expiry(now_ms + interval_ms)
        return Result(None, records)

    # Producers.

    def init_producer_id(
        self, request: InitProducerIdRequest, now_ms: int, new_producer_id: int | None = None
    ) -> Result[InitProducerIdResponse]:
        return self._initialization.init_producer_id(request, now_ms, new_producer_id)

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        now_ms: int,
        *,
        client_version: int = 0,
    ) -> Result[None]:
        return membership.add_partitions(
            self._store,
            transactional_id,
            producer,
            partitions,
            client_version=client_version,
            now_ms=now_ms,
        )

    def verify_partitions(
        self, transactional_id: str, producer: Producer, partitions: Collection[TopicPartition]
    ) -> Result[Mapping[TopicPartition, ErrorCode]]:
        return Result(
            membership.verify_partitions(self._store, transactional_id, producer, partitions)
        )

    def end_txn(
        self,
        request: EndTxnRequest,
        now_ms: int,
        *,
        client_version: int,
        new_producer_id: int | None = None,
    ) -> Result[EndTxnResponse]:
        return ending.end_txn(
            self._store,
            request,
            client_version=client_version,
            now_ms=now_ms,
            new_producer_id=new_producer_id,
        )

    # Markers.

    def markers_of(self, transactional_id: str) -> Result[PendingMarkers | None]:
        return Result(ending.markers_of(self._store, transactional_id))

    def complete(self, transactional_id: str, written: PendingMarkers, now_ms: int) -> Result[None]:
        return ending.complete(self._store, transactional_id, written, now_ms)

    # Administrators.

    def describe(self, transactional_id: str) -> Result[DescribedTransaction]:
        return Result(views.describe(self._store, transactional_id))

    def list_transactions(
        self, request: ListTransactionsRequest, matches: Callable[[str], bool], now_ms: int
    ) -> Result[tuple[ListedTransaction, ...]]:
        """`matches` is the request's pattern for transactional ids."""
        return Result(views.list_transactions(self._store, request, matches, now_ms))
