"""The clients of a trial. Each runs in a thread and records the history."""

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import (
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from tests.cluster.faults.history import Copied, History, Partition, Transaction, Written

DELIVERY_TIMEOUT_MS = 600_000  # Never give up: losses of the cluster would go unnoticed.
END_TIMEOUT_S = 120.0
_PAUSE_S = 0.005
_BATCH = 500
_TRANSACTION_MAX = 100

NO_LOGIN: Mapping[str, object] = {}
# With the other strategy, a client that lost all brokers may wait for a coordinator forever.
RECOVERY = "none"


class Worker(threading.Thread, ABC):
    """Works until asked to end; an error becomes a problem in the history."""

    def __init__(self, name: str, history: History) -> None:
        super().__init__(name=name, daemon=True)
        self.history = history
        self._stopping = threading.Event()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def run(self) -> None:
        try:
            self.work()
        except Exception as error:  # Nothing else would see it.
            self.history.on_problem(f"{self.name} ended: {error!r}")

    @abstractmethod
    def work(self) -> None: ...

    def ask_to_end(self) -> None:
        self._stopping.set()


class Writer(Worker):
    """Produces numbered records to every partition of a topic in turn."""

    def __init__(
        self,
        name: str,
        history: History,
        bootstrap: str,
        topic: str,
        partitions: int,
        *,
        idempotent: bool,
        login: Mapping[str, object] = NO_LOGIN,
    ) -> None:
        super().__init__(name, history)
        self._topic = topic
        self._numbers = [0] * partitions
        if idempotent:
            history.idempotent.add(name)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                **login,
                "client.id": name,
                "acks": "all",
                "enable.idempotence": idempotent,
                # This keeps the order of one that is not idempotent, unless a partition moves.
                "max.in.flight": 5 if idempotent else 1,
                "linger.ms": 2,
                "message.timeout.ms": DELIVERY_TIMEOUT_MS,
                "request.timeout.ms": 5_000,
                "socket.timeout.ms": 10_000,
                "log_level": 0,
            }
        )

    def work(self) -> None:
        partition = 0
        while not self.is_stopping:
            if len(self._producer) < _BATCH:
                self._send(partition)
                partition = (partition + 1) % len(self._numbers)
            self._producer.poll(_PAUSE_S)
        left = self._producer.flush(END_TIMEOUT_S)
        if left:
            self.history.on_problem(f"{self.name}: {left} records were never acknowledged")

    def _send(self, partition: int) -> None:
        written = Written(self.name, self._numbers[partition])
        self._numbers[partition] += 1
        topic_partition = Partition(self._topic, partition)
        self._producer.produce(
            self._topic,
            written.encode(),
            partition=partition,
            on_delivery=lambda error, message: self._on_delivery(
                topic_partition, written, error, message
            ),
        )

    def _on_delivery(
        self,
        topic_partition: Partition,
        written: Written,
        error: KafkaError | None,
        message: Message,
    ) -> None:
        if error is None:
            self.history.on_acked(topic_partition, written, message.offset())
        else:
            self.history.on_problem(
                f"{self.name}: {written} of {topic_partition} was refused: {error}"
            )


class Reader(Worker):
    """A member of a group that reads a topic and commits."""

    def __init__(
        self,
        name: str,
        history: History,
        bootstrap: str,
        group: str,
        topic: str,
        login: Mapping[str, object] = NO_LOGIN,
    ) -> None:
        super().__init__(name, history)
        self._consumer = Consumer(
            {
                **consumer_config(bootstrap, group, login),
                "client.id": name,
                "session.timeout.ms": 10_000,
                "auto.commit.interval.ms": 500,
            }
        )
        self._consumer.subscribe([topic], on_assign=lambda *_: history.on_assignment(group))

    def work(self) -> None:
        try:
            while not self.is_stopping:
                self._note(self._consumer.consume(_BATCH, timeout=0.1))
        finally:
            self._consumer.close()

    def _note(self, messages: Sequence[Message]) -> None:
        by_partition: dict[Partition, list[tuple[int, bytes]]] = {}
        for message in messages:
            if message.error() is None:
                by_partition.setdefault(partition_of(message), []).append(record_of(message))
        for topic_partition, records in by_partition.items():
            self.history.on_consumed(topic_partition, records)


class Copier(Worker):
    """Copies a topic to another, a few records in each transaction, with the source's offsets."""

    def __init__(
        self,
        name: str,
        history: History,
        bootstrap: str,
        group: str,
        source: str,
        target: str,
        partitions: int,
        login: Mapping[str, object] = NO_LOGIN,
    ) -> None:
        super().__init__(name, history)
        self._servers = bootstrap
        self._login = login
        self._group = group
        self._source = source
        self._target = target
        self._partitions = partitions
        self._number = 0

    def work(self) -> None:
        """A client with a fatal error, such as being too slow, is replaced."""
        while not self.is_stopping:
            with suppress(KafkaException):
                self._live()

    def _live(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._servers,
                **self._login,
                "client.id": self.name,
                "transactional.id": self.name,
                "transaction.timeout.ms": 30_000,
                "metadata.recovery.strategy": RECOVERY,
                "request.timeout.ms": 5_000,
                "socket.timeout.ms": 10_000,
                "log_level": 0,
            }
        )
        consumer = Consumer(
            {
                **consumer_config(self._servers, self._group, self._login),
                "client.id": self.name,
                "enable.auto.commit": False,
                "session.timeout.ms": 10_000,
            }
        )
        try:
            _retried(lambda: producer.init_transactions(30), self)
            consumer.subscribe(
                [self._source], on_assign=lambda *_: self.history.on_assignment(self._group)
            )
            while not self.is_stopping:
                messages = [
                    message
                    for message in consumer.consume(_TRANSACTION_MAX, timeout=0.2)
                    if message.error() is None
                ]
                if messages:
                    self._copy(producer, consumer, messages)
        finally:
            consumer.close()

    def _copy(self, producer: Producer, consumer: Consumer, messages: Sequence[Message]) -> None:
        self._number += 1
        number, size = self._number, len(messages)
        committed: bool | None = None
        try:
            producer.begin_transaction()
            for message in messages:
                self._produce_copy(producer, number, message)
            offsets = _next_offsets(messages)
            group = consumer.consumer_group_metadata()
            _retried(lambda: producer.send_offsets_to_transaction(offsets, group, 30), self)
            _retried(lambda: producer.commit_transaction(30), self)
            committed = True
        except KafkaException as error:
            problem = error.args[0]
            if not problem.txn_requires_abort():
                raise
            _retried(lambda: producer.abort_transaction(30), self)
            committed = False
            _rewind(consumer)
        finally:
            self.history.on_transaction(Transaction(self.name, number, size, committed))

    def _produce_copy(self, producer: Producer, number: int, message: Message) -> None:
        source, offset = partition_of(message), offset_of(message)
        producer.produce(
            self._target,
            Copied(self.name, number, source, offset).encode(),
            partition=offset % self._partitions,
        )


def _retried(call: Callable[[], object], worker: Worker) -> None:
    """Retries abortable transactions; a client that should end gives up after a while."""
    deadline = time.monotonic() + END_TIMEOUT_S
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or (
                worker.is_stopping and time.monotonic() > deadline
            ):
                raise


def _rewind(consumer: Consumer) -> None:
    """Seeks to the committed offsets: records of an aborted transaction are read again."""
    for committed in consumer.committed(consumer.assignment(), timeout=30):
        if committed.offset == OFFSET_INVALID:
            low, _ = consumer.get_watermark_offsets(committed, timeout=30)
            committed.offset = low
        consumer.seek(committed)


def _next_offsets(messages: Iterable[Message]) -> list[TopicPartition]:
    next_offsets = {partition_of(message): offset_of(message) + 1 for message in messages}
    return [
        TopicPartition(*topic_partition, offset) for topic_partition, offset in next_offsets.items()
    ]


def partition_of(message: Message) -> Partition:
    topic, partition = message.topic(), message.partition()
    assert topic is not None
    assert partition is not None
    return Partition(topic, partition)


def offset_of(message: Message) -> int:
    offset = message.offset()
    assert offset is not None
    return offset


def record_of(message: Message) -> tuple[int, bytes]:
    """Its offset and its value."""
    value = message.value()
    assert value is not None
    return offset_of(message), value


def consumer_config(
    bootstrap: str, group: str, login: Mapping[str, object] = NO_LOGIN
) -> dict[str, object]:
    return {
        "bootstrap.servers": bootstrap,
        **login,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "metadata.recovery.strategy": RECOVERY,
        "log_level": 0,
    }
