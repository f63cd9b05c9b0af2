"""Producers, a coordinator that fails over, a slow driver, and late requests.

It looks for torn transactions (only some writes of one are committed), zombies (a write that is
committed with a transaction that is not its own), ends that differ from what a producer was told,
and hanging transactions.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.transactions.kit import T0, T1, Coordinator

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import iterate_headers, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import (
    ControlType,
    Marker,
    build_marker,
    iterate_records,
    parse_marker,
)
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.recovery import LoadRequest
from ottla.transactions.ending import PendingMarkers
from ottla.transactions.state import DECIDED, IDLE
from ottla.transactions.transaction import Producer

PARTITIONS = (T0, T1)


class Write(NamedTuple):
    producer: Producer
    topic_partition: TopicPartition
    sequence: int
    transaction: str
    version: int  # From 2 on the write itself adds its partition.


@dataclass
class Client:
    name: str
    version: int
    producer: Producer
    number: int = 0  # In its transaction.
    is_open: bool = False
    is_ending: bool | None = None  # Whether it asked to commit, while it has no answer.
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def transaction(self) -> str:
        return f"{self.name}/{self.number}"


class Partitions:
    """Real logs, written with the checks of a leader."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        disk = FaultyFilesystem(seed=1)
        self.logs: dict[TopicPartition, PartitionLog] = {}
        for topic_partition in PARTITIONS:
            disk.make_directory(f"/{topic_partition}")
            request = LoadRequest(f"/{topic_partition}", topic_partition, LogConfig(), 0)
            self.logs[topic_partition] = open_partition_log(LogDirectory("/", disk), request)

    def write(self, write: Write) -> None:
        """Like the Produce handler, once the partition was added."""
        log = self.logs[write.topic_partition]
        entry = log.producers.get(write.producer.id)
        is_open = (
            entry is not None
            and entry.transaction_first_offset >= 0
            and entry.producer_epoch == write.producer.epoch
        )
        if not is_open:
            (code,) = self._coordinator.verify(write.producer, write.topic_partition)
            if code is not ErrorCode.none:
                raise ApiError(code)
        batch = build_batch(
            [Record(timestamp=1, value=write.transaction.encode())],
            producer_id=write.producer.id,
            producer_epoch=write.producer.epoch,
            base_sequence=write.sequence,
            transactional=True,
        )
        log.append_as_leader(memoryview(batch), read_header(batch), 0, 1)

    def mark(self, topic_partition: TopicPartition, pending: PendingMarkers) -> None:
        kind = ControlType.COMMIT if pending.committed else ControlType.ABORT
        batch = build_marker(
            Marker(kind, 0),
            timestamp_ms=1,
            producer_id=pending.producer_id,
            producer_epoch=pending.producer_epoch,
        )
        self.logs[topic_partition].append_control(
            batch, 0, transaction_version=pending.client_version
        )

    def outcomes(self) -> dict[str, set[str]]:
        """The outcome of each transaction's writes: committed, aborted, open."""
        found: dict[str, set[str]] = {}
        for log in self.logs.values():
            unended: dict[int, list[str]] = {}
            for producer_id, content in _contents(log):
                if isinstance(content, str):
                    unended.setdefault(producer_id, []).append(content)
                    continue
                ended = "committed" if content.type is ControlType.COMMIT else "aborted"
                for transaction in unended.pop(producer_id, ()):
                    found.setdefault(transaction, set()).add(ended)
            for transaction in (writing for writes in unended.values() for writing in writes):
                found.setdefault(transaction, set()).add("open")
        return found


def _contents(log: PartitionLog) -> list[tuple[int, str | Marker]]:
    if not log.log_end_offset:
        return []
    found = log.read(0, 1 << 20, log.log_end_offset)
    assert found is not None
    data = found.read()
    contents: list[tuple[int, str | Marker]] = []
    for position, header in iterate_headers(data):
        (record,) = iterate_records(data, position)
        marker = parse_marker(record) if header.is_control else None
        contents.append((header.producer_id, marker or (record.value or b"").decode()))
    return contents


class TransactionModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.coordinator = Coordinator()
        self.partitions = Partitions(self.coordinator)
        self.clients: list[Client] = []
        self.started_count = 0
        self.sent: list[Write] = []
        self.acknowledged: dict[str, int] = {}
        self.outcomes: dict[str, str] = {}  # What clients know about their transactions.
        self.marked: set[TopicPartition] = set()

    @precondition(lambda self: len(self.clients) < 4)
    @rule(version=st.sampled_from([0, 2]))
    def start_producer(self, version: int) -> None:
        try:
            response = self.coordinator.init()
        except ApiError:
            return
        if response.error_code is ErrorCode.none:
            producer = Producer(response.producer_id, response.producer_epoch)
            self.clients.append(Client(f"client{self.started_count}", version, producer))
            self.started_count += 1

    @precondition(lambda self: any(client.is_ending is None for client in self.clients))
    @rule(data=st.data(), topic_partition=st.sampled_from(PARTITIONS), is_lost=st.booleans())
    def write(self, data: st.DataObject, topic_partition: TopicPartition, is_lost: bool) -> None:
        client = data.draw(
            st.sampled_from([idle for idle in self.clients if idle.is_ending is None])
        )
        write = Write(
            client.producer,
            topic_partition,
            client.sequences.get(topic_partition, 0),
            client.transaction,
            client.version,
        )
        try:
            self.coordinator.add(client.producer, topic_partition, version=client.version)
            client.is_open = True
            self.sent.append(write)
            if is_lost:
                client.is_ending = False  # It arrives late, or never; the client gives up.
                return
            self.partitions.write(write)
        except ApiError as error:
            self._on_refused(client, error)
        else:
            client.sequences[topic_partition] = write.sequence + 1
            self._on_acknowledged(write)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def deliver_late_or_again(self, data: st.DataObject) -> None:
        """A request that the network delayed."""
        write = data.draw(st.sampled_from(self.sent))
        try:
            if write.version:
                self.coordinator.add(write.producer, write.topic_partition, version=2)
            self.partitions.write(write)
        except ApiError:
            return
        self._on_acknowledged(write)

    @precondition(lambda self: any(client.is_open for client in self.clients))
    @rule(data=st.data(), commit=st.booleans(), is_answered=st.booleans())
    def end(self, data: st.DataObject, commit: bool, is_answered: bool) -> None:
        client = data.draw(st.sampled_from([known for known in self.clients if known.is_open]))
        if client.is_ending is not None:
            commit = client.is_ending
        client.is_ending = commit
        try:
            response = self.coordinator.end(client.producer, commit=commit, version=client.version)
        except ApiError as error:
            self._on_refused(client, error)
            return
        if not is_answered:
            return  # The client retries.
        outcome = "committed" if commit else "aborted"
        assert self.outcomes.setdefault(client.transaction, outcome) == outcome
        if client.version:
            following = Producer(response.producer_id, response.producer_epoch)
            assert following != client.producer
            client.producer = following
            client.sequences.clear()
        elif not commit:
            self.clients.remove(client)  # An older one needs a new epoch, so initializes again.
        client.number += 1
        client.is_open = False
        client.is_ending = None

    @rule(topic_partitions=st.sets(st.sampled_from(PARTITIONS)))
    def write_markers(self, topic_partitions: set[TopicPartition]) -> None:
        """The driver reaches some partitions; it is done once it has reached all."""
        self._drive(topic_partitions)

    @rule()
    def fail_over(self) -> None:
        """The next coordinator does not know which markers were written."""
        self.coordinator.reload()
        self.marked.clear()

    @rule(duration_ms=st.sampled_from([1, 30_000, 60_000]))
    def advance(self, duration_ms: int) -> None:
        self.coordinator.advance(duration_ms)

    @rule()
    def settle(self) -> None:
        """Open transactions time out, and every marker gets through: nothing hangs."""
        self._drive(set(PARTITIONS))
        self.coordinator.advance(60_000)
        self._drive(set(PARTITIONS))
        assert all("open" not in found for found in self.partitions.outcomes().values())
        assert all(state in IDLE for state in self.coordinator.states())

    @invariant()
    def transactions_are_whole(self) -> None:
        is_decided = self._pending() is not None
        for transaction, found in self.partitions.outcomes().items():
            assert found != {"committed", "aborted"}, f"{transaction} is torn"
            outcome = self.outcomes.get(transaction)
            if outcome is not None and not is_decided:
                assert found == {outcome}, f"{transaction} was {outcome}, but is {found}"

    @invariant()
    def what_was_acknowledged_is_there(self) -> None:
        outcomes = self.partitions.outcomes()
        assert all(transaction in outcomes for transaction in self.acknowledged)

    def _pending(self) -> PendingMarkers | None:
        return self.coordinator.run(lambda _: self.coordinator.machine.markers_of("x"))

    def _drive(self, topic_partitions: set[TopicPartition]) -> None:
        pending = self._pending()
        if pending is None:
            return
        for topic_partition in (topic_partitions & pending.partitions) - self.marked:
            self.partitions.mark(topic_partition, pending)
            self.marked.add(topic_partition)
        if self.marked >= pending.partitions:
            self.marked.clear()
            self.coordinator.run(
                lambda now_ms: self.coordinator.machine.complete("x", pending, now_ms)
            )
            assert self.coordinator.state() not in DECIDED

    def _on_acknowledged(self, write: Write) -> None:
        self.acknowledged[write.transaction] = self.acknowledged.get(write.transaction, 0) + 1

    def _on_refused(self, client: Client, error: ApiError) -> None:
        fatal = {ErrorCode.producer_fenced, ErrorCode.invalid_producer_epoch}
        if error.code in fatal and client in self.clients:
            self.clients.remove(client)


TestTransactionModel = TransactionModel.TestCase
TestTransactionModel.settings = settings(max_examples=75, stateful_step_count=30)
