"""The future of one record: where it was written, or why not.

One is made for every record that is sent, so it has nothing but the outcome; what others wait for
is kept beside it.
"""

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from ottla.client.messages import RecordMetadata


class Delivery:
    """librdkafka calls it with the outcome, in the thread that polls the producer."""

    __slots__ = ("_outcome",)
    _outcome: tuple[Any, Any]  # Error or None, and the raw message; not there before.

    def __call__(self, error: Any, message: Any) -> None:
        self._outcome = error, message
        # Whoever waits has said so before looking for the outcome: one of both sees the other.
        if _watched:
            _call_back(self)

    def done(self) -> bool:
        return hasattr(self, "_outcome")

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record is. Raises KafkaException if it was not written, or TimeoutError."""
        error, message = self._wait(timeout)
        if error is not None:
            raise KafkaException(error)
        return RecordMetadata(message.topic(), message.partition(), message.offset())

    def exception(self, timeout: float | None = None) -> KafkaException | None:
        error, _ = self._wait(timeout)
        return None if error is None else KafkaException(error)

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """It is called once, in the thread that hears of the outcome; at once if that is known."""
        with _guard:
            _watched.setdefault(self, []).append(callback)
        if self.done():
            _call_back(self)
        else:
            self._hurry()

    def _wait(self, timeout: float | None) -> tuple[Any, Any]:
        if not self.done():
            known = threading.Event()
            self.add_done_callback(lambda _: known.set())
            if not known.wait(timeout):
                raise TimeoutError("the record is not delivered yet")
        return self._outcome

    def _hurry(self) -> None:
        """Somebody waits for it."""


_guard = threading.Lock()
_watched: dict[Delivery, list[Callable[[Delivery], object]]] = {}


def _call_back(delivery: Delivery) -> None:
    with _guard:
        callbacks = _watched.pop(delivery, ())
    for callback in callbacks:
        callback(delivery)


def delivery_type(hurry: Callable[[], object]) -> type[Delivery]:
    """The deliveries of one producer, which is told when somebody waits for one."""
    return type("Delivery", (Delivery,), {"__slots__": (), "_hurry": lambda _: hurry()})
