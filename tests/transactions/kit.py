"""Drives a TransactionMachine like the runtime, with manual time.

Every record is encoded and decoded, as if it came from a log.
"""

import itertools
from collections.abc import Callable, Iterable
from typing import TypeVar

from kio.schema.end_txn.v5.request import EndTxnRequest
from kio.schema.end_txn.v5.response import EndTxnResponse
from kio.schema.init_producer_id.v6.request import InitProducerIdRequest
from kio.schema.init_producer_id.v6.response import InitProducerIdResponse
from kio.schema.types import ProducerId, TransactionalId
from kio.static.primitive import i16
from tests.kits.manual_timers import ManualTimers

from ottla.machine.result import Deferred, Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import TopicPartition
from ottla.transactions.config import TransactionConfig
from ottla.transactions.coordinator import TransactionMachine
from ottla.transactions.ending import CompleteTransaction, PendingMarkers
from ottla.transactions.producer_ids import ProducerIdNeeded
from ottla.transactions.record import TransactionRecord
from ottla.transactions.record_codec import TransactionRecordCodec
from ottla.transactions.state import TransactionState
from ottla.transactions.transaction import Producer, Transaction

R = TypeVar("R")

START_MS = 1_000_000
FIRST_ID = 100
TIMEOUT_MS = 60_000
T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)

_codec = TransactionRecordCodec()


class Coordinator:
    def __init__(self, config: TransactionConfig | None = None) -> None:
        self.config = config or TransactionConfig()
        self.now_ms = START_MS
        self.log: list[TransactionRecord] = []
        self.last_records: tuple[object, ...] = ()  # From the last operation or expiry.
        self.decided: list[str] = []  # The transactions whose markers the machine wants written.
        self._ids = itertools.count(FIRST_ID)
        self._load()

    def _load(self) -> None:
        self.timers = ManualTimers()
        self.decided.clear()
        self.machine = TransactionMachine(config=self.config, timers=self.timers)
        for record in self.log:
            self.machine.replay(record, self.now_ms)
        self.machine.on_loaded(self.now_ms)
        self.advance(0)

    def reload(self) -> None:
        """Another coordinator takes over, with nothing but the log."""
        self._load()

    def run(self, operation: Callable[[int], Result[R]]) -> R:
        self.last_records = ()
        result = operation(self.now_ms)
        self.last_records = result.records
        for record in result.records:
            written = _codec.decode(*_codec.encode(record))
            assert isinstance(written, TransactionRecord)
            self.log.append(written)
            self.machine.replay(written, self.now_ms)
        for effect in result.effects:
            assert isinstance(effect, CompleteTransaction)
            self.decided.append(effect.transactional_id)
        assert not isinstance(result.response, Deferred)
        return result.response

    def advance(self, duration_ms: int) -> list[object]:
        """Let time pass and timers expire, each at its deadline; returns all their records."""
        until_ms = self.now_ms + duration_ms
        records: list[object] = []
        while (due := self.timers.pop_due(until_ms)) is not None:
            deadline_ms, expiry = due
            self.now_ms = max(self.now_ms, deadline_ms)
            self.run(expiry)
            records.extend(self.last_records)
        self.now_ms = until_ms
        return records

    # Requests, with irrelevant fields filled in.

    def init(
        self,
        transactional_id: str = "x",
        *,
        expected: Producer = Producer(-1, -1),  # noqa: B008
        timeout_ms: int = TIMEOUT_MS,
        two_phase: bool = False,
        keep: bool = False,
    ) -> InitProducerIdResponse:
        request = InitProducerIdRequest(
            transactional_id=TransactionalId(transactional_id),
            transaction_timeout=milliseconds(timeout_ms),
            producer_id=ProducerId(expected.id),
            producer_epoch=i16(expected.epoch),
            enable2_pc=two_phase,
            keep_prepared_txn=keep,
        )
        return self._with_id(
            lambda now_ms, new_id: self.machine.init_producer_id(request, now_ms, new_id)
        )

    def producer(self, transactional_id: str = "x") -> Producer:
        """A new producer, ready to begin."""
        response = self.init(transactional_id)
        assert response.error_code is ErrorCode.none
        return Producer(response.producer_id, response.producer_epoch)

    def add(
        self,
        producer: Producer,
        *partitions: TopicPartition,
        transactional_id: str = "x",
        version: int = 0,
    ) -> None:
        self.run(
            lambda now_ms: self.machine.add_partitions(
                transactional_id, producer, partitions, now_ms, client_version=version
            )
        )

    def verify(
        self, producer: Producer, *partitions: TopicPartition, transactional_id: str = "x"
    ) -> list[ErrorCode]:
        found = self.run(
            lambda _: self.machine.verify_partitions(transactional_id, producer, partitions)
        )
        return [found[partition] for partition in partitions]

    def end(
        self,
        producer: Producer,
        *,
        commit: bool = True,
        version: int = 0,
        transactional_id: str = "x",
    ) -> EndTxnResponse:
        request = EndTxnRequest(
            transactional_id=TransactionalId(transactional_id),
            producer_id=ProducerId(producer.id),
            producer_epoch=i16(producer.epoch),
            committed=commit,
        )
        return self._with_id(
            lambda now_ms, new_id: self.machine.end_txn(
                request, now_ms, client_version=version, new_producer_id=new_id
            )
        )

    def write_markers(self, transactional_id: str = "x") -> PendingMarkers:
        """Like the driver when it can reach every partition; returns what it wrote."""
        pending = self.run(lambda _: self.machine.markers_of(transactional_id))
        assert pending is not None
        self.run(lambda now_ms: self.machine.complete(transactional_id, pending, now_ms))
        return pending

    def transaction(self, transactional_id: str = "x") -> Transaction:
        (found,) = (
            record.transaction
            for record in self.machine.snapshot()
            if isinstance(record, TransactionRecord)
            and record.transactional_id == transactional_id
            and record.transaction is not None
        )
        return found

    def state(self, transactional_id: str = "x") -> TransactionState:
        return self.transaction(transactional_id).state

    def states(self) -> list[TransactionState]:
        """The states of all transactional ids."""
        return [record.state for record in recorded(self.machine.snapshot())]

    def _with_id(self, operation: Callable[[int, int | None], Result[R]]) -> R:
        try:
            return self.run(lambda now_ms: operation(now_ms, None))
        except ProducerIdNeeded:
            new_id = next(self._ids)
            return self.run(lambda now_ms: operation(now_ms, new_id))


def refusal(operation: Callable[[], object]) -> ErrorCode:
    """The error code that refuses the whole operation."""
    try:
        operation()
    except ApiError as error:
        return error.code
    raise AssertionError("the operation was not refused")


def recorded(records: Iterable[object]) -> list[Transaction]:
    """The written transactions; none was removed."""
    written = []
    for record in records:
        if isinstance(record, TransactionRecord):
            assert record.transaction is not None
            written.append(record.transaction)
    return written
