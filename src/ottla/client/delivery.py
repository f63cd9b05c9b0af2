"""The future of one record: its offset, or the error.

One is created for every record sent, so it holds only the outcome; waiters are kept elsewhere.
"""

import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException

from ottla.client.messages import RecordMetadata


class Delivery:
    """librdkafka calls it with the outcome in the thread that polls the producer."""

    __slots__ = ("_outcome",)
    _outcome: tuple[Any, Any]  # Error or None, and the raw message; unset until known.

    def __call__(self, error: Any, message: Any) -> None:
        self._outcome = error, message
        # A waiter registers before it looks for the outcome, so one of the two sees the other.
        if _watched:
            _call_back(self)

    def done(self) -> bool:
        return hasattr(self, "_outcome")

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Partition and offset. Raises KafkaException if it was not written, or TimeoutError."""
        error, message = self._wait(timeout)
        if error is not None:
            raise KafkaException(error)
        return RecordMetadata(message.topic(), message.partition(), message.offset())

    def exception(self, timeout: float | None = None) -> KafkaException | None:
        error, _ = self._wait(timeout)
        return None if error is None else KafkaException(error)

    def add_done_callback(self, callback: "Callable[[Delivery], object]") -> None:
        """Called once, in the thread that polls; immediately if the outcome is already known."""
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
        """Called when somebody waits for this delivery."""


_guard = threading.Lock()
_watched: dict[Delivery, list[Callable[[Delivery], object]]] = {}


def _call_back(delivery: Delivery) -> None:
    with _guard:
        callbacks = _watched.pop(delivery, ())
    for callback in callbacks:
        callback(delivery)


def delivery_type(hurry: Callable[[], object]) -> type[Delivery]:
    """The delivery class of one producer; `hurry` is called when somebody waits for one."""
    return type("Delivery", (Delivery,), {"__slots__": (), "_hurry": lambda _: hurry()})
