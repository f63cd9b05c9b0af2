"""Takes records from a queue: a share group hands each to one of its consumers, until one has
acknowledged it."""

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
    """To be acknowledged before the next one is asked for; otherwise it is released."""

    _consumer: "ShareConsumer"

    def ack(self) -> None:
        """It is done, and nobody gets it again."""
        self._consumer.ack(self)

    def nack(self, delay: float | None = None) -> None:
        """Somebody is to try again; not before `delay` seconds have passed."""
        self._consumer.nack(self, delay)

    def reject(self) -> None:
        """Nobody can do it: it goes to the dead letters, if the group has any."""
        self._consumer.reject(self)


class Renewal:
    """When the locks of messages that are worked on are to be renewed."""

    def __init__(self) -> None:
        self._due_s = time.monotonic() + RENEW_INTERVAL_S

    def left_s(self) -> float:
        return max(0.0, self._due_s - time.monotonic())

    def is_due(self) -> bool:
        """If so, the next time is an interval from now."""
        if self.left_s():
            return False
        self._due_s = time.monotonic() + RENEW_INTERVAL_S
        return True


class ShareConsumer:
    """`ShareConsumer(config)` or `ShareConsumer(group_id=..., bootstrap_servers=...)`.

    One thread uses it; `run` has threads for handlers.
    """

    def __init__(self, config: ShareConsumerConfig | None = None, **settings: Any) -> None:
        if config is not None and settings:
            raise TypeError("give a ShareConsumerConfig or its fields, not both")
        self.config = config or ShareConsumerConfig(**settings)
        settings = self.config.settings()
        settings["client.id"] = f"{settings['client.id']}-{uuid.uuid4()}"
        self._settings = settings
        self._deliveries: ShareDeliveries | None = None  # From the first use on.
        self._renews = True  # Until the broker turns out not to.
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
        """Messages as soon as there are any; those of the last poll must not be kept."""
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
        """Messages as they come, until the consumer is closed."""
        while not self._closed:
            for message in self.poll():
                yield message
                self.settle(message)

    def ack(self, message: ShareMessage) -> None:
        self._acknowledge(message, AcknowledgeType.ACCEPT)

    def nack(self, message: ShareMessage, delay: float | None = None) -> None:
        """`delay`, in seconds, is for brokers of Ottla; it returns when the broker has it."""
        if delay is not None:
            self.commit()  # The broker refuses what is told together with something wrong.
            self._own_deliveries().release(message, delay)
        self._acknowledge(message, AcknowledgeType.RELEASE)
        if delay is not None:
            self.raw.commit_sync()  # Done already, which the broker says.

    def reject(self, message: ShareMessage) -> None:
        self._acknowledge(message, AcknowledgeType.REJECT)

    def commit(self) -> None:
        """Returns when the broker has what was acknowledged."""
        for failure in self.raw.commit_sync().values():
            if failure is not None:
                raise failure

    def close(self) -> None:
        """What is not acknowledged is released, and the group is left."""
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
        """Call the handler with every message, until SIGTERM, SIGINT or `stop`; then close.

        What it returns from is acknowledged; what it raises at is released, and handed out again as
        often as the group allows. There are `concurrency` handlers at a time, each in a thread,
        however many partitions there are; Ottla's brokers hold their messages for as long as they
        take. Those at work when it is to stop finish their message.
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
        """Acknowledge each when it is done; this thread alone talks to the broker."""

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
        """Nobody else gets them for some time; a broker that cannot do that is asked once."""
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
        """Acknowledge it, or release it if the handler has failed."""
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
            logger.warning("%r took too long: others may have it now", message)

    def settle(self, message: ShareMessage) -> None:
        """Release it unless it is acknowledged, and tell the broker."""
        if _record_id(message) in self._held:
            self.nack(message)
        self.commit()

    def _acknowledge(self, message: ShareMessage, kind: AcknowledgeType) -> None:
        if self._held.pop(_record_id(message), None) is None:
            raise ValueError(f"{message} is acknowledged already, or of an earlier poll")
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
    """In the main thread, the only one that may; elsewhere nothing changes."""
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
