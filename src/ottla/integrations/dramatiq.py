"""A Dramatiq broker.

    import dramatiq
    from ottla.integrations.dramatiq import OttlaBroker

    dramatiq.set_broker(OttlaBroker("localhost:9092"))

A queue is the topic `<namespace>.<queue>`; workers are consumers in the share group `<namespace>`.
Ottla's brokers keep delays, including the back-off of Dramatiq's retries: there are no delay
queues.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Final

from confluent_kafka import KafkaException
from dramatiq import Broker, Consumer, Message, MessageProxy, Middleware
from dramatiq.errors import ConnectionFailed, DecodeError, QueueJoinTimeout, QueueNotFound

from ottla.client.config import ProducerConfig
from ottla.client.share_wire.contents import clear, counts
from ottla.client.share_wire.settling import ACCEPT, REJECT, Verdict
from ottla.client.wire.errors import WireError
from ottla.integrations.engine import Engine
from ottla.integrations.task_queue import LOCK_S, Delivery, Trouble
from ottla.integrations.topics import TASK_CONFIG, topic_name

logger = logging.getLogger(__name__)

ACTOR_HEADER: Final = "dramatiq-actor"
MESSAGE_ID_HEADER: Final = "dramatiq-id"
DELAY_MS_MAX: Final = 7 * 24 * 3600 * 1000  # Also the longest back-off of Dramatiq's retries.

# A task that waited for the maximum delay has as much time again to run.
_CONFIG: Final = {**TASK_CONFIG, "retention.ms": str(2 * DELAY_MS_MAX)}


class OttlaBroker(Broker):
    def __init__(
        self,
        bootstrap_servers: Sequence[str] | str = (),
        *,
        namespace: str = "dramatiq",
        lock_s: float = LOCK_S,
        middleware: list[Middleware] | None = None,
        **settings: Any,
    ) -> None:
        """Connects on first use. A dead worker keeps its tasks for at most `lock_s` more seconds.

        `settings` are fields of ottla.client.ProducerConfig, such as the login.
        """
        super().__init__(middleware=middleware)
        self.queues: dict[str, str] = {}  # Topic by queue.
        self._namespace = topic_name(namespace)
        self._lock_s = lock_s
        self._config = ProducerConfig(
            bootstrap_servers=bootstrap_servers, **{"linger_ms": 0, **settings}
        )
        self._engine: Engine | None = None
        self._connecting = threading.Lock()

    @property
    def engine(self) -> Engine:
        """Raises ConnectionFailed if no broker answers. A forked process gets its own."""
        with self._connecting:
            if self._engine is None or self._engine.is_inherited:
                self._engine = Engine.shared(self._config, self._namespace, self._lock_s)
            return self._engine

    def close(self) -> None:
        """Unacknowledged tasks return to the other workers at once."""
        with self._connecting:
            if self._engine is not None:
                self._engine.release()
            self._engine = None

    def declare_queue(self, queue_name: str) -> None:
        """The topic is created on first use."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues[queue_name] = topic_name(f"{self._namespace}.{queue_name}")
            self.emit_after("declare_queue", queue_name)

    def enqueue(self, message: "Message[Any]", *, delay: int | None = None) -> "Message[Any]":
        """Returns once all in-sync replicas have the message. `delay` is in milliseconds."""
        if delay is not None and delay > DELAY_MS_MAX:
            raise ValueError(f"a delay of {delay} ms is longer than seven days")
        self.declare_queue(message.queue_name)
        self.emit_before("enqueue", message, delay)
        try:
            self.engine.send(
                self._topic(message.queue_name),
                message.encode(),
                [(MESSAGE_ID_HEADER, message.message_id), (ACTOR_HEADER, message.actor_name)],
                None if delay is None else max(0, delay) / 1000,
            )
        except (WireError, KafkaException) as error:
            if isinstance(message, MessageProxy):
                message.fail()  # Dramatiq would acknowledge it although the retry was lost.
            raise ConnectionFailed(str(error)) from error
        self.emit_after("enqueue", message, delay)
        return message

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 30_000) -> Consumer:
        try:
            topic = self._topic(queue_name)
        except WireError as error:
            raise ConnectionFailed(str(error)) from error
        return OttlaConsumer(self.engine, topic, prefetch, timeout / 1000)

    def flush(self, queue_name: str) -> None:
        """Deletes running tasks as well; their acknowledgement then comes too late."""
        self.engine.call(clear(self.engine.cluster, self._topic(queue_name)))

    def flush_all(self) -> None:
        for queue_name in self.queues:
            self.flush(queue_name)

    def join(self, queue_name: str, *, interval: int = 100, timeout: int | None = None) -> None:
        """Wait until every message is processed, including delayed ones and retries.

        Raises QueueJoinTimeout after `timeout` milliseconds.
        """
        topic = self._topic(queue_name)
        deadline = None if timeout is None else time.monotonic() + timeout / 1000
        while any(self.engine.call(counts(self.engine.cluster, topic, self._namespace))):
            if deadline is not None and time.monotonic() > deadline:
                raise QueueJoinTimeout(queue_name)
            time.sleep(interval / 1000)

    def _topic(self, queue_name: str) -> str:
        """The queue's topic, created if missing. Raises QueueNotFound."""
        topic = self.queues.get(queue_name)
        if topic is None:
            raise QueueNotFound(queue_name)
        self.engine.ensure_topic(topic, config=_CONFIG)
        return topic


class _Received(MessageProxy):
    def __init__(self, message: "Message[Any]", delivery: Delivery) -> None:
        super().__init__(message)
        self.delivery = delivery


class OttlaConsumer(Consumer):
    """Its own thread iterates; the worker's threads acknowledge."""

    def __init__(self, engine: Engine, topic: str, prefetch: int, timeout_s: float) -> None:
        self._engine = engine
        self._topic = topic
        self._prefetch = max(1, prefetch)
        self._timeout_s = timeout_s
        self._trouble = Trouble(f"no tasks of {topic}")
        self._found: deque[Delivery] = deque()  # Received, not handed out yet.
        self._running: set[Delivery] = set()
        self._settled = threading.Condition()

    def __next__(self) -> MessageProxy | None:
        if not self._found:
            self._found.extend(self._engine.call(self._receive(self._await_room())))
        if not self._found:
            return None
        delivery = self._found.popleft()
        try:
            message: Message[Any] = Message.decode(delivery.value)
        except DecodeError as error:
            logger.warning("%r becomes a dead letter: %s", delivery, error)
            self._settle(delivery, REJECT)
            return None
        with self._settled:
            self._running.add(delivery)
        return _Received(message, delivery)

    def ack(self, message: MessageProxy) -> None:
        """Returns once the broker has recorded it."""
        self._settle(_delivery(message), ACCEPT)

    def nack(self, message: MessageProxy) -> None:
        self._settle(_delivery(message), REJECT)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        self._put_back([_delivery(message) for message in messages])

    def close(self) -> None:
        self._put_back(self._found)
        self._found.clear()

    def _await_room(self) -> int:
        """Returns how many more may be received."""
        with self._settled:
            self._settled.wait_for(lambda: len(self._running) < self._prefetch, self._timeout_s)
            return self._prefetch - len(self._running)

    async def _receive(self, count: int) -> list[Delivery]:
        if count <= 0:
            return []
        try:
            found = await self._engine.tasks.receive(self._topic, count, self._timeout_s)
        except WireError as error:
            await self._trouble.on_error(error)
            return []
        self._trouble.on_success()
        return found

    def _settle(self, delivery: Delivery, verdict: Verdict) -> None:
        try:
            self._engine.call(self._engine.tasks.settle(delivery, verdict))
        finally:
            self._forget([delivery])

    def _put_back(self, deliveries: Iterable[Delivery]) -> None:
        self._engine.call(self._engine.tasks.put_back(deliveries))
        self._forget(deliveries)

    def _forget(self, deliveries: Iterable[Delivery]) -> None:
        with self._settled:
            self._running.difference_update(deliveries)
            self._settled.notify()


def _delivery(message: MessageProxy) -> Delivery:
    assert isinstance(message, _Received)
    return message.delivery
