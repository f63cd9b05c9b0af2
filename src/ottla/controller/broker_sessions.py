"""What this controller has heard from brokers since it became the leader.

Sessions are not replicated: a new controller gives every broker some time to be heard from.

A broker sends its next heartbeat only after the response to the last one, which waits until
everything it reports is committed. If that takes long, as on a slow disk, the broker does not count
as silent. The records that would fence it could not be committed any sooner either.
"""

from collections.abc import Callable, Iterable
from dataclasses import field

from ottla.machine.contract import Timers
from ottla.machine.result import Deferred, Result
from ottla.protocol.lazy_dataclass import dataclass

_UNKNOWN = -1


@dataclass(slots=True)
class _Session:
    deadline_ms: int = 0
    metadata_offset: int = _UNKNOWN  # How far the broker has read the metadata.
    shutdown_offset: int = _UNKNOWN  # Those who have read this far know it leads nothing.
    answer: Deferred[object] = field(default_factory=Deferred)  # To its last heartbeat.
    is_kept_waiting: bool = False


# With the broker id, the time and the reason for giving the broker up.
OnExpired = Callable[[int, int, str], Result[None]]


class BrokerSessions:
    """`on_expired` is the operation for a broker that was silent for too long."""

    def __init__(self, timeout_ms: int, timers: Timers, on_expired: OnExpired) -> None:
        self._timeout_ms = timeout_ms
        self._timers = timers
        self._on_expired = on_expired
        self._sessions: dict[int, _Session] = {}  # Of brokers that were heard from.

    def await_first(self, broker_id: int, now_ms: int) -> None:
        """Live brokers look for a new controller at once."""
        wait_ms = self._timeout_ms * 2 // 3
        cause = f"not heard from for {_seconds(wait_ms)} since this node is the controller"
        self._schedule(broker_id, now_ms + wait_ms, cause)

    def touch(
        self, broker_id: int, metadata_offset: int, answer: Deferred[object], now_ms: int
    ) -> None:
        """`answer` is settled when the heartbeat is answered."""
        session = self._sessions.setdefault(broker_id, _Session())
        session.metadata_offset = metadata_offset
        session.answer = answer
        session.is_kept_waiting = False
        session.deadline_ms = now_ms + self._timeout_ms
        cause = f"no heartbeat for {_seconds(self._timeout_ms)}"
        self._schedule(broker_id, session.deadline_ms, cause)

    def suspect(self, broker_id: int, now_ms: int) -> None:
        """Allow it about two heartbeat intervals to be heard from."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.deadline_ms = min(session.deadline_ms, now_ms + self._timeout_ms * 2 // 5)
            cause = "its connection closed and no heartbeat has come since"
            self._schedule(broker_id, session.deadline_ms, cause)

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)
        self._timers.cancel(_key(broker_id))

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self._sessions

    def expire_again(self, broker_id: int, now_ms: int, cause: str) -> None:
        """Its expiry takes more than one operation; a heartbeat in between cancels the rest."""
        self._schedule(broker_id, now_ms, cause)

    def set_shutdown_offset(self, broker_id: int, offset: int) -> None:
        self._sessions[broker_id].shutdown_offset = offset

    def is_shutdown_known(self, broker_id: int, others: Iterable[int]) -> bool:
        """Whether the other brokers know that this one no longer leads anything."""
        wanted = self._sessions[broker_id].shutdown_offset
        return all(
            self._sessions.get(other, _Session()).metadata_offset >= wanted for other in others
        )

    def _schedule(self, broker_id: int, deadline_ms: int, cause: str) -> None:
        self._timers.schedule(
            _key(broker_id),
            deadline_ms,
            lambda now_ms: self._expire(broker_id, deadline_ms, now_ms, cause),
        )

    def _expire(self, broker_id: int, deadline_ms: int, now_ms: int, cause: str) -> Result[None]:
        if now_ms - deadline_ms > self._timeout_ms // 10:
            # This controller itself was held up, and heartbeats may be unread.
            self._schedule(broker_id, now_ms + self._timeout_ms // 4, cause)
            return Result(None)
        session = self._sessions.get(broker_id)
        if session is not None and (session.is_kept_waiting or not session.answer.settled):
            session.is_kept_waiting = not session.answer.settled
            self._schedule(broker_id, now_ms + self._timeout_ms, cause)
            return Result(None)
        self._sessions.pop(broker_id, None)
        return self._on_expired(broker_id, now_ms, cause)


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def _key(broker_id: int) -> str:
    return f"broker-session-{broker_id}"
