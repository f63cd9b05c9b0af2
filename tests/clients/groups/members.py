"""Group members: real consumers that poll in a thread of their own, as applications do."""

import asyncio
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import aiokafka
import kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition
from kafka.errors import KafkaConnectionError
from tests.clients.aiokafka_client import stop
from tests.clients.client import TIMEOUT_S

POLL_MS = 50
# A poll that ends in the middle of a rebalance makes kafka-python 3.0 forget its assignment.
KAFKA_PYTHON_POLL_MS = 2_000
# Slow members must not lose their session, or records would be read again.
SESSION_TIMEOUT_MS = 45_000
HEARTBEAT_INTERVAL_MS = 300


class Received(NamedTuple):
    partition: int
    offset: int


class Poller(Protocol):
    """A consumer of one topic; it belongs to one thread."""

    def poll(self) -> list[Received]: ...

    def assignment(self) -> set[int]: ...

    def commit(self) -> None:
        """Commit everything polled; returns once the broker has confirmed it."""
        ...

    def close(self) -> None: ...


class ConfluentPoller:
    protocol = "classic"

    def __init__(self, bootstrap: str, group: str, topic: str, **config: Any) -> None:
        self.revoked: list[set[int]] = []
        values = {
            "bootstrap.servers": bootstrap,
            "log_level": 0,
            "group.id": group,
            "group.protocol": self.protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if self.protocol == "classic":
            values["session.timeout.ms"] = SESSION_TIMEOUT_MS
            values["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
        self._consumer = Consumer(values | config)
        self._consumer.subscribe([topic], on_revoke=self._on_revoke)

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.revoked.append({revoked.partition for revoked in partitions})

    def poll(self) -> list[Received]:
        messages = self._consumer.consume(100, POLL_MS / 1000)
        return [
            Received(message.partition() or 0, message.offset() or 0)
            for message in messages
            if message.error() is None
        ]

    def assignment(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit(asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


class ConsumerProtocolPoller(ConfluentPoller):
    """librdkafka with the protocol of KIP-848."""

    protocol = "consumer"


class KafkaPythonPoller:
    def __init__(self, bootstrap: str, group: str, topic: str, **config: Any) -> None:
        values = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        }
        self._consumer = kafka.KafkaConsumer(topic, **(values | config))

    def poll(self) -> list[Received]:
        try:
            polled = self._consumer.poll(KAFKA_PYTHON_POLL_MS)
        except KafkaConnectionError:
            return []  # It leaves to its caller what other clients do by themselves.
        return [
            Received(record.partition, record.offset)
            for records in polled.values()
            for record in records
        ]

    def assignment(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        self._consumer.commit()

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class AiokafkaPoller:
    def __init__(self, bootstrap: str, group: str, topic: str, **config: Any) -> None:
        values = {
            "bootstrap_servers": bootstrap,
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "session_timeout_ms": SESSION_TIMEOUT_MS,
            "heartbeat_interval_ms": HEARTBEAT_INTERVAL_MS,
        }
        self._loop = asyncio.new_event_loop()
        self._consumer = self._run(self._start(topic, values | config))

    async def _start(self, topic: str, config: dict[str, Any]) -> aiokafka.AIOKafkaConsumer:
        consumer = aiokafka.AIOKafkaConsumer(topic, **config)
        await consumer.start()
        return consumer

    def _run(self, call: Any) -> Any:
        return self._loop.run_until_complete(call)

    def poll(self) -> list[Received]:
        polled = self._run(self._consumer.getmany(timeout_ms=POLL_MS))
        return [
            Received(record.partition, record.offset)
            for records in polled.values()
            for record in records
        ]

    def assignment(self) -> set[int]:
        return {assigned.partition for assigned in self._consumer.assignment()}

    def commit(self) -> None:
        self._run(self._consumer.commit())

    def close(self) -> None:
        try:
            self._run(stop(self._consumer))
        finally:
            self._loop.close()


class CommittingPoller:
    """Commits the last poll before polling again."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller

    def poll(self) -> list[Received]:
        try:
            self._poller.commit()
        except KafkaException:
            pass  # Nothing was polled yet, or the partitions move to others.
        return self._poller.poll()

    def assignment(self) -> set[int]:
        return self._poller.assignment()

    def commit(self) -> None:
        self._poller.commit()

    def close(self) -> None:
        self._poller.close()


POLLERS: dict[str, Callable[..., Poller]] = {
    "confluent": ConfluentPoller,
    "confluent-consumer-protocol": ConsumerProtocolPoller,
    "kafka-python": KafkaPythonPoller,
    "aiokafka": AiokafkaPoller,
}


class Group:
    """Waits for conditions on its members."""

    def __init__(self) -> None:
        self._progress = threading.Condition()
        self._members: list[Member] = []

    def join(self, start: Callable[[], Poller]) -> "Member":
        member = Member(start, self._on_progress)
        self._members.append(member)
        return member

    def _on_progress(self) -> None:
        with self._progress:
            self._progress.notify_all()

    def wait_for(self, reached: Callable[[], bool]) -> None:
        def reached_or_failed() -> bool:
            return any(member.failure for member in self._members) or reached()

        with self._progress:
            in_time = self._progress.wait_for(reached_or_failed, TIMEOUT_S)
        for member in self._members:
            if member.failure:
                raise member.failure
        assigned = [sorted(member.assigned) for member in self._members]
        assert in_time, f"it was not reached; assigned are {assigned}"

    def leave(self) -> None:
        for member in self._members:
            member.leave()


class Member(threading.Thread):
    def __init__(self, start: Callable[[], Poller], on_progress: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.assigned: set[int] = set()
        self.received: list[Received] = []
        self.failure: BaseException | None = None
        self.poller: Poller | None = None
        self._make = start
        self._on_progress = on_progress
        self._leaving = False
        self._commits: list[Future[None]] = []
        self.start()

    def run(self) -> None:
        try:
            self.poller = self._make()
            try:
                while not self._leaving:
                    self._turn(self.poller)
            finally:
                self.poller.close()
        except BaseException as error:
            self.failure = error
            for done in self._commits:
                done.set_exception(error)
        self.assigned = set()
        self._on_progress()

    def _turn(self, poller: Poller) -> None:
        self.received += poller.poll()
        self.assigned = poller.assignment()
        if self._commits:
            poller.commit()
            self._commits.pop().set_result(None)
        self._on_progress()

    def commit(self) -> None:
        done: Future[None] = Future()
        self._commits.append(done)
        done.result(TIMEOUT_S)

    def leave(self) -> None:
        self._leaving = True
        self.join(TIMEOUT_S)
        assert not self.is_alive(), "the consumer did not close"
        if self.failure:
            raise self.failure

    def offsets(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for partition, offset in self.received:
            found.setdefault(partition, []).append(offset)
        return found


def disjoint(members: Iterable[Member], partitions: int) -> bool:
    """Every partition has one owner, and every member has partitions."""
    owned = [member.assigned for member in members]
    union = set().union(*owned)
    return all(owned) and len(union) == sum(map(len, owned)) == partitions
