"""Consume a queue: a share group delivers each record to one consumer at a time, until it is
acknowledged."""

import contextlib
import logging
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Self

import confluent_kafka
from confluent_kafka import AcknowledgeType, KafkaError, KafkaException

from ottla.client.config import ShareConsumerConfig
from ottla.client.consumer import deserializer_of, message_type
from ottla.client.messages import Message

if TYPE_CHECKING:
    from ottla.client.share_deliveries import ShareDeliveries

logger = logging.getLogger(__name__)

POLL_S = 1.0
RENEW_INTERVAL_S = 5.0
RENEWED_LOCK_S = 30.0


class ShareMessage(Message):
    """Acknowledge it before requesting the next message; otherwise it is released."""

    _consumer: "ShareConsumer"

    def ack(self) -> None:
        """Done; it is not delivered again."""
        self._consumer.ack(self)

    def nack(self, delay: float | None = None) -> None:
        """Failed; deliver it again, after `delay` seconds at the earliest."""
        self._consumer.nack(self, delay)

    def reject(self) -> None:
        """Unprocessable; it goes to the group's dead-letter topic, if it has one."""
        self._consumer.reject(self)


class Renewal:
    """Decides when to renew the locks of messages in progress."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + RENEW_INTERVAL_S

    def left_s(self) -> float:
        return max(0.0, self._due_s - time.monotonic())

    def is_due(self) -> bool:
        """If due, the next renewal is one interval from now."""
        if self.left_s():
            return False
        self._due_s = time.monotonic() + RENEW_INTERVAL_S
        return True


class ShareConsumer:
    """`ShareConsumer(config)` or `ShareConsumer(group_id=..., bootstrap_servers=...)`.

    Not thread-safe; `run` calls handlers in threads.
    """

    def __init__(self, config: ShareConsumerConfig | None = None, **settings: Any) -> None:
        self.config = ShareConsumerConfig.of(config, settings)
        settings = self.config.settings()
        settings["client.id"] = f"{settings['client.id']}-{uuid.uuid4()}"
        self._settings = settings
        self._deliveries: ShareDeliveries | None = None  # Created on first use.
        self._renews = True  # False once the broker turns out not to support it.
        self.raw = confluent_kafka.ShareConsumer(settings)
        self._deserialize = deserializer_of(self.config.value_deserializer)
        self._message_type = message_type(self.config.key_deserializer, ShareMessage)
        self._topics: list[str] = []
        self._held: dict[tuple[str, int, int], ShareMessage] = {}  # Not acknowledged yet.
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def subscribe(self, topics: Sequence[str] | str) -> Self:
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        self.raw.subscribe(self._topics)
        return self

    def poll(self, timeout: float = POLL_S) -> list[ShareMessage]:
        """Return messages as soon as there are any, after releasing those of the previous poll."""
        self._release_held()
        messages = []
        for found in self.raw.poll(timeout):
            error = found.error()
            if error is not None:
                raise KafkaException(error)
            message = self._message(found)
            self._held[_record_id(message)] = message
            messages.append(message)
        return messages

    def __iter__(self) -> Iterator[ShareMessage]:
        """Yield messages until the consumer is closed."""
        while not self._closed:
            for message in self.poll():
                yield message
                self.settle(message)

    def ack(self, message: ShareMessage) -> None:
        self._acknowledge(message, AcknowledgeType.ACCEPT)

    def nack(self, message: ShareMessage, delay: float | None = None) -> None:
        """`delay`, in seconds, needs an Ottla broker; returns when the broker has it."""
        if delay is not None:
            self.commit()  # One invalid acknowledgement would fail the whole request.
            self._own_deliveries().release(message, delay)
        self._acknowledge(message, AcknowledgeType.RELEASE)
        if delay is not None:
            self.raw.commit_sync()  # Already done, and the broker says so.

    def reject(self, message: ShareMessage) -> None:
        self._acknowledge(message, AcknowledgeType.REJECT)

    def commit(self) -> None:
        """Wait until the broker has all acknowledgements."""
        for failure in self.raw.commit_sync().values():
            if failure is not None:
                raise failure

    def close(self) -> None:
        """Release messages that are not acknowledged, and leave the group."""
        if not self._closed:
            self._closed = True
            self._release_held()
            self.raw.close()
            if self._deliveries is not None:
                self._deliveries.close()

    def run(
        self,
        handler: Callable[[ShareMessage], object],
        *,
        concurrency: int = 1,
        stop: threading.Event | None = None,
    ) -> None:
        """Call the handler with every message until SIGTERM, SIGINT or `stop`, then close.

        A message is acknowledged when the handler returns. If the handler raises, it is released
        and delivered again, as often as the group allows. Up to `concurrency` handlers run at a
        time, each in a thread, whatever the number of partitions; Ottla's brokers hold their
        messages for as long as they take. On stop, running handlers finish their message.
        """
        stop = stop or threading.Event()
        with (
            _stopping_on_signals(stop),
            ThreadPoolExecutor(concurrency, "ottla-worker") as workers,
            self,
        ):
            while not stop.is_set():
                self._handle_all(workers, handler, self.poll(), stop)

    def _handle_all(
        self,
        workers: ThreadPoolExecutor,
        handler: Callable[[ShareMessage], object],
        messages: Sequence[ShareMessage],
        stop: threading.Event,
    ) -> None:
        """Acknowledges each message when it is done; only this thread talks to the broker."""

        def handle(message: ShareMessage) -> bool:
            if stop.is_set():
                return False
            handler(message)
            return True

        running = {workers.submit(handle, message): message for message in messages}
        renewal = Renewal()
        while running:
            done, _ = wait(running, renewal.left_s(), return_when=FIRST_COMPLETED)
            for future in done:
                message, error = running.pop(future), future.exception()
                if error is not None or future.result():
                    self.on_handled(message, error)
            if renewal.is_due():
                self.renew(list(running.values()))

    def renew(self, messages: Sequence[ShareMessage]) -> None:
        """Extend the locks of messages; a broker that does not support it is asked only once."""
        from ottla.client.wire.errors import WireError

        if not self._renews or not messages:
            return
        try:
            self._own_deliveries().renew(messages, RENEWED_LOCK_S)
        except (WireError, LookupError) as error:
            self._renews = False
            logger.warning("cannot renew locks while handlers run: %s", error)

    def _own_deliveries(self) -> "ShareDeliveries":
        if self._deliveries is None:
            from ottla.client.share_deliveries import ShareDeliveries

            self._deliveries = ShareDeliveries(self._settings, self.config.group_id)
        return self._deliveries

    def on_handled(self, message: ShareMessage, error: BaseException | None) -> None:
        """Acknowledge the message, or release it if the handler failed."""
        if error is not None:
            logger.error(
                "the handler failed with %r; the record is released", message, exc_info=error
            )
        elif _record_id(message) in self._held:
            self.ack(message)
        try:
            self.settle(message)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.INVALID_RECORD_STATE:
                raise
            logger.warning("%r took too long: another consumer may have it now", message)

    def settle(self, message: ShareMessage) -> None:
        """Release the message unless it is acknowledged, and tell the broker."""
        if _record_id(message) in self._held:
            self.nack(message)
        self.commit()

    def _acknowledge(self, message: ShareMessage, kind: AcknowledgeType) -> None:
        if self._held.pop(_record_id(message), None) is None:
            raise ValueError(f"{message} was already acknowledged, or came from an earlier poll")
        self.raw.acknowledge(message.raw, kind)

    def _release_held(self) -> None:
        for message in list(self._held.values()):
            self.nack(message)

    def _message(self, found: Any) -> ShareMessage:
        value = found.value()
        if self._deserialize is not None:
            value = self._deserialize(value)
        message = self._message_type((value, found))
        message._consumer = self
        return message


@contextlib.contextmanager
def _stopping_on_signals(stop: threading.Event) -> Iterator[None]:
    """Installs signal handlers, in the main thread only; does nothing in other threads."""
    previous: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGINT):
            previous[number] = signal.signal(number, lambda *_: stop.set())
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _record_id(message: Message) -> tuple[str, int, int]:
    raw = message.raw
    return raw.topic(), raw.partition(), raw.offset()
