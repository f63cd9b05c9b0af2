"""Requests to other replicas: one at a time to each, with a timeout and a pause after failures."""

from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.messages import ReplicaRequest


@dataclass(slots=True)
class _InFlight:
    correlation_id: int
    request: ReplicaRequest
    deadline_ms: int


class Requests:
    def __init__(self, *, timeout_ms: int, retry_backoff_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._retry_backoff_ms = retry_backoff_ms
        self._next_correlation_id = 1
        self._in_flight: dict[int, _InFlight] = {}
        self._blocked_until_ms: dict[int, int] = {}

    def can_send(self, destination: int, now_ms: int) -> bool:
        return (
            destination not in self._in_flight
            and self._blocked_until_ms.get(destination, now_ms) <= now_ms
        )

    @property
    def is_idle(self) -> bool:
        """Nothing is in flight, and nothing has just failed."""
        return not self._in_flight and not self._blocked_until_ms

    def send(self, destination: int, request: ReplicaRequest, now_ms: int) -> int:
        """Returns the correlation id to send it with."""
        assert self.can_send(destination, now_ms)
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self._in_flight[destination] = _InFlight(correlation_id, request, now_ms + self._timeout_ms)
        return correlation_id

    def take(self, destination: int, correlation_id: int) -> ReplicaRequest | None:
        """The request being answered; None if this response is no longer expected."""
        waiting = self._in_flight.get(destination)
        if waiting is None or waiting.correlation_id != correlation_id:
            return None
        del self._in_flight[destination]
        return waiting.request

    def back_off(self, destination: int, now_ms: int) -> None:
        self._blocked_until_ms[destination] = now_ms + self._retry_backoff_ms

    def expire(self, now_ms: int) -> None:
        for destination, waiting in list(self._in_flight.items()):
            if waiting.deadline_ms <= now_ms:
                del self._in_flight[destination]
                self.back_off(destination, now_ms)
        for destination, until_ms in list(self._blocked_until_ms.items()):
            if until_ms <= now_ms:
                del self._blocked_until_ms[destination]

    def forget_all(self) -> None:
        """The replica changed its state: responses to earlier requests no longer count."""
        self._in_flight.clear()
        self._blocked_until_ms.clear()

    def deadlines_ms(self) -> list[int]:
        return [
            *(waiting.deadline_ms for waiting in self._in_flight.values()),
            *self._blocked_until_ms.values(),
        ]
