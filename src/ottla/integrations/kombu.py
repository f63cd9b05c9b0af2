"""A kombu transport, and so a broker for Celery.

    import ottla.integrations.kombu

    app = Celery(broker="ottla://localhost:9092")

The import registers the name `ottla`. A queue is a topic read by a share group, a message with a
priority goes to a separate topic for that priority, and a fanout exchange is a topic that each
listener reads on its own (broadcasts.py). The brokers keep Celery's ETA.
"""

import contextlib
import datetime as dt
import os
import select
import time
from collections.abc import Callable
from queue import Empty
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from confluent_kafka import KafkaException
from kombu.transport import TRANSPORT_ALIASES, base, virtual
from kombu.utils.json import dumps, loads

from ottla.client.config import ProducerConfig
from ottla.client.share_wire.settling import ACCEPT, PUT_BACK, REJECT, Verdict
from ottla.client.wire.errors import WireError
from ottla.integrations.broadcasts import ROUTING_KEY_HEADER, TOPIC_CONFIG, Listener
from ottla.integrations.engine import Engine
from ottla.integrations.kombu_queues import Prefetched, QueueTopics
from ottla.integrations.task_queue import LOCK_S, RELEASE, Delivery
from ottla.integrations.topics import topic_name

TRANSPORT_ALIASES["ottla"] = f"{__name__}:Transport"

DEFAULT_GROUP: Final = "celery"


class QoS(virtual.QoS):
    """Forwards the channel's settlements to the broker."""

    def ack(self, delivery_tag: str) -> None:
        self._settle(delivery_tag, ACCEPT)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        self._settle(delivery_tag, RELEASE if requeue else REJECT)

    def _settle(self, delivery_tag: str, verdict: Verdict) -> None:
        was_full = not self.can_consume()
        self.channel.settle(delivery_tag, verdict)
        super().ack(delivery_tag)
        self.channel.prefetch()
        if was_full:
            self.channel.connection.wake()  # For messages that wait to be delivered.


class Channel(virtual.Channel):
    QoS = QoS
    do_restore = False  # The broker keeps unacknowledged messages.
    supports_fanout = True

    def __init__(self, connection: "Transport", **options: Any) -> None:
        super().__init__(connection, **options)
        self._deliveries: dict[str, Delivery] = {}  # By the tag of the unacknowledged message.
        self._prefetched: dict[str, Prefetched] = {}  # By consumed queue.
        self._unacknowledged: set[str] = set()  # Queues consumed without acknowledgement.
        self._turn = 0

    # Queue declaration.

    def queue_declare(self, queue: str | None = None, passive: bool = False, **options: Any) -> Any:
        """Counts messages only when the caller asks about the queue, because counting is slow."""
        declared = super().queue_declare(queue, passive, **options)
        return declared._replace(message_count=self.size(declared.queue) if passive else 0)

    def _new_queue(self, queue: str, **options: Any) -> None:
        if not options.get("durable", True) and options.get("auto_delete"):
            self.connection.listener(queue)
        else:
            for topic in self.connection.topics_of(queue).by_priority:
                self.connection.engine.ensure_topic(topic)

    def _has_queue(self, queue: str, **_: Any) -> bool:
        if queue in self.connection.listeners:
            return True
        engine = self.connection.engine
        topics = self.connection.topics_of(queue).by_priority
        return len(engine.call(engine.cluster.topics(topics))) == len(topics)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        kind = self.typeof(exchange)
        if queue in self.connection.listeners:
            self.connection.listen(queue, exchange, _accepts(kind, routing_key, pattern))
        elif kind.type == "fanout":
            self.connection.topics_of(queue).follow(self.connection.exchange_topic(exchange))

    def _size(self, queue: str) -> int:
        return 0  # See `queue_declare`.

    def size(self, queue: str) -> int:
        listener = self._listener(queue)
        if listener is not None:
            return len(listener.messages)
        return int(self.connection.topics_of(queue).size())

    def _listener(self, queue: str) -> Listener | None:
        listeners: dict[str, Listener] = self.connection.listeners
        return listeners.get(queue)

    def _purge(self, queue: str) -> int:
        listener = self._listener(queue)
        if listener is None:
            return int(self.connection.topics_of(queue).purge())
        count = len(listener.messages)
        listener.messages.clear()
        return count

    def _delete(self, queue: str, *_: Any, **__: Any) -> None:
        if not self.connection.stop_listening(queue):
            self.connection.topics_of(queue).delete()

    # Publishing.

    def basic_publish(
        self, message: dict[str, Any], exchange: str, routing_key: str, **_: Any
    ) -> None:
        self._inplace_augment_message(message, exchange, routing_key)
        if not exchange:
            self._put(routing_key, message)
            return
        kind = self.typeof(exchange).type
        queues = []
        if kind != "fanout":
            found = self._lookup(exchange, routing_key)
            queues = [queue for queue in found if queue not in self.connection.listeners]
        for queue in queues:
            self._put(queue, message)
        if kind != "direct" or not queues:
            self._put_fanout(exchange, message, routing_key)

    def _put(self, queue: str, message: dict[str, Any], **_: Any) -> None:
        topic = self.connection.topics_of(queue).topic_for(self._get_message_priority(message))
        engine = self.connection.engine
        engine.ensure_topic(topic)
        engine.send(topic, dumps(message).encode(), [], _delay_s(message))

    def _put_fanout(self, exchange: str, message: dict[str, Any], routing_key: str) -> None:
        headers: list[tuple[str, str | bytes | None]] = [(ROUTING_KEY_HEADER, routing_key or "")]
        topic = self.connection.exchange_topic(exchange)
        self.connection.engine.send(topic, dumps(message).encode(), headers)

    # Consuming.

    def basic_consume(self, queue: str, no_ack: bool, *arguments: Any, **options: Any) -> None:
        super().basic_consume(queue, no_ack, *arguments, **options)
        if no_ack:
            self._unacknowledged.add(queue)
        if queue in self.connection.listeners:
            self.connection.listen_at_least_to(queue)
        elif queue not in self._prefetched:
            engine = self.connection.engine
            topics = self.connection.topics_of(queue)
            self._prefetched[queue] = Prefetched(engine, topics, self.connection.wake)
        self.prefetch()
        self.connection.wake()

    def basic_cancel(self, consumer_tag: str) -> None:
        queue = self._tag_to_queue.get(consumer_tag)
        super().basic_cancel(consumer_tag)
        if queue is not None and queue not in self._active_queues:
            self._unacknowledged.discard(queue)
            prefetched = self._prefetched.pop(queue, None)
            if prefetched is not None:
                prefetched.close()

    def basic_qos(
        self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False
    ) -> None:
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self.prefetch()
        self.connection.wake()

    def prefetch(self) -> None:
        """Request more messages if there is room."""
        if self.qos.can_consume():
            for prefetched in self._prefetched.values():
                prefetched.want(self.qos.can_consume_max_estimate())

    def deliver_one(self, deliver: Callable[[dict[str, Any], str], None]) -> bool:
        """Queues take turns."""
        queues = self._active_queues
        for step in range(len(queues)):
            queue = queues[(self._turn + step) % len(queues)]
            if not self.qos.can_consume():
                return False
            with contextlib.suppress(Empty):
                message = self._take(queue)
                self._turn += step + 1
                deliver(message, queue)
                self.prefetch()
                return True
        return False

    def _take(self, queue: str) -> dict[str, Any]:
        listener = self._listener(queue)
        if listener is not None:
            if not listener.messages:
                raise Empty
            return self._opened(listener.messages.popleft(), None, queue)
        delivery = self._prefetched[queue].take()
        return self._opened(delivery.value, delivery, queue)

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        """Without a consumer, only what is available now."""
        if queue in self.connection.listeners or queue in self._prefetched:
            return self._take(queue)
        found = self.connection.topics_of(queue).receive_now()
        if found is None:
            raise Empty
        return self._opened(found.value, found, queue)

    def _opened(self, value: bytes, delivery: Delivery | None, queue: str) -> dict[str, Any]:
        message: dict[str, Any] = loads(value)
        properties = message["properties"]
        tag = properties["delivery_tag"] = self._next_delivery_tag()
        if delivery is not None:
            is_again = delivery.delivery_count > 1
            properties.setdefault("delivery_info", {})["redelivered"] = is_again
            self._deliveries[tag] = delivery
            if queue in self._unacknowledged:
                self.settle(tag, ACCEPT)
        return message

    def basic_get(self, queue: str, no_ack: bool = False, **options: Any) -> Any:
        message = super().basic_get(queue, no_ack, **options)
        if message is not None and no_ack:
            self.settle(message.delivery_tag, ACCEPT)
        return message

    def settle(self, delivery_tag: str, verdict: Verdict) -> None:
        """Broadcast messages have nothing to settle."""
        delivery = self._deliveries.pop(delivery_tag, None)
        engine = self.connection.engine
        if delivery is not None and not engine.is_inherited:
            engine.tasks.settle_soon(delivery, verdict)

    def close(self) -> None:
        """Unacknowledged messages return to the other consumers at once."""
        if not self.closed and not self.connection.engine.is_inherited:
            for prefetched in self._prefetched.values():
                prefetched.close()
            self._prefetched.clear()
            for tag in list(self._deliveries):
                self.settle(tag, PUT_BACK)
        super().close()


class Transport(virtual.Transport):
    Channel = Channel
    can_parse_url = True
    default_port = 9092
    driver_type = "ottla"
    driver_name = "ottla"
    polling_interval = None
    connection_errors = (*base.Transport.connection_errors, OSError, WireError, KafkaException)
    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"])
    )

    def __init__(self, client: Any, **options: Any) -> None:
        super().__init__(client, **options)
        self.listeners: dict[str, Listener] = {}  # By queue.
        self._queues: dict[str, QueueTopics] = {}
        self._engine: Engine | None = None
        self._news = -1  # An eventfd, signalled when something may be deliverable.

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            options = self.client.transport_options
            group = str(options.get("group", DEFAULT_GROUP))
            lock_s = float(options.get("lock_s", LOCK_S))
            self._engine = Engine.shared(_config(self.client), group, lock_s)
            self._news = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._engine

    def as_uri(self, uri: str, include_password: bool = False, mask: str = "**") -> str:
        """For logs. Kombu's own takes a list of servers for one port."""
        url = urlsplit(uri)
        login, at, servers = url.netloc.rpartition("@")
        user, colon, password = login.partition(":")
        shown = password if include_password else mask
        login = f"{user}{colon}{shown if colon else ''}"
        return url._replace(netloc=f"{login}{at}{servers}").geturl()

    def driver_version(self) -> str:
        from ottla import __version__

        return __version__

    def establish_connection(self) -> "Transport":
        engine = self.engine
        try:
            engine.call(engine.cluster.any_broker())
        except WireError:
            self.close_connection(self)  # Otherwise its producer would retry forever.
            raise
        super().establish_connection()
        return self

    def close_connection(self, connection: Any) -> None:
        if self._engine is None:
            return
        engine, self._engine = self._engine, None
        if not engine.is_inherited:
            self._engine = engine
            super().close_connection(connection)
            self._engine = None
            for queue in list(self.listeners):
                engine.call(self.listeners.pop(queue).close())
            for topics in self._queues.values():
                engine.call(topics.give_back())
            engine.release()
        os.close(self._news)

    # Queues and exchanges.

    def topics_of(self, queue: str) -> QueueTopics:
        if queue not in self._queues:
            steps = self.client.transport_options.get("priority_steps", (0,))
            self._queues[queue] = QueueTopics(self.engine, queue, sorted(steps))
        return self._queues[queue]

    def exchange_topic(self, exchange: str) -> str:
        topic = topic_name(f"exchange.{exchange}")
        self.engine.ensure_topic(topic, partitions=1, config=TOPIC_CONFIG)
        return topic

    def listener(self, queue: str) -> Listener:
        if queue not in self.listeners:
            self.listeners[queue] = Listener(self.engine.cluster, self.wake)
        return self.listeners[queue]

    def listen(self, queue: str, exchange: str, accepts: Callable[[str], bool]) -> None:
        topic = self.exchange_topic(exchange)
        self.engine.call(self.listeners[queue].listen(topic, accepts))

    def listen_at_least_to(self, queue: str) -> None:
        """A queue without bindings receives what is sent to its name."""
        listener = self.listeners[queue]
        if not listener.listens:
            (topic,) = QueueTopics(self.engine, queue, [0]).by_priority
            self.engine.ensure_topic(topic, partitions=1, config=TOPIC_CONFIG)
            self.engine.call(listener.listen(topic, lambda _: True))

    def stop_listening(self, queue: str) -> bool:
        listener = self.listeners.pop(queue, None)
        if listener is not None:
            self.engine.call(listener.close())
        return listener is not None

    # Delivering.

    def wake(self) -> None:
        """Thread-safe."""
        with contextlib.suppress(OSError, BlockingIOError):
            os.eventfd_write(self._news, 1)

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        assert self._engine is not None
        loop.add_reader(self._news, self.on_readable)

    def on_readable(self) -> None:
        self._clear_news()
        while self._deliver_one():
            pass

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            if self._deliver_one():
                return
            self._clear_news()
            if self._deliver_one():  # Arrived in between.
                return
            left_s = None if deadline is None else deadline - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise TimeoutError
            select.select([self._news], [], [], left_s)

    def _clear_news(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._news)

    def _deliver_one(self) -> bool:
        return any(channel.deliver_one(self._deliver) for channel in list(self.channels))


def _accepts(kind: Any, routing_key: str, pattern: str | None) -> Callable[[str], bool]:
    if kind.type == "fanout":
        return lambda _: True
    if kind.type == "topic":
        return lambda key: kind._match(pattern, key) is not None
    return lambda key: key == routing_key


def _delay_s(message: dict[str, Any]) -> float | None:
    """Seconds until the time at which Celery wants the task to run."""
    eta = (message.get("headers") or {}).get("eta")
    if not eta:
        return None
    moment = eta if isinstance(eta, dt.datetime) else dt.datetime.fromisoformat(eta)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=dt.UTC)
    delay_s = (moment - dt.datetime.now(dt.UTC)).total_seconds()
    return delay_s if delay_s > 0 else None


def _config(client: Any) -> ProducerConfig:
    """From `ottla://user:password@host:port,host:port?security_protocol=SASL_SSL`. Fields of
    ottla.client.ProducerConfig come from the URL or the transport options.
    """
    name = client.hostname or ""
    url = urlsplit(name)
    login, _, servers = url.netloc.rpartition("@")
    user, _, password = map(unquote, login.partition(":"))
    if "://" not in name:  # Split by kombu, like the URLs it fails over to.
        servers = f"{name}:{client.port}" if name and client.port else name
        user, password = client.userid or "", client.password or ""
    settings: dict[str, Any] = {"linger_ms": 0, "bootstrap_servers": servers}
    if user:
        settings["sasl_username"], settings["sasl_password"] = user, password
    settings |= dict(parse_qsl(url.query))
    return ProducerConfig(**settings, **client.transport_options.get("client", {}))
