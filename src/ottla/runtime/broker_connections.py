"""Notices when the connection that carries a broker's heartbeats to this controller ends.

A dead process is gone at once, and others should not wait for its session to expire. The connection
may also have broken for another reason; then the next heartbeat arrives on a new one.
"""

from collections.abc import Callable, Container

from ottla.network.session import Session
from ottla.runtime.leadership import Leadership


class BrokerConnections:
    def __init__(self, leadership: Leadership, look_at: Callable[[int], None]) -> None:
        """`look_at` checks whether a broker's process has ended."""
        self._leadership = leadership
        self._look_at = look_at
        self._sessions: dict[int, Session] = {}  # The newest session of each broker.

    @property
    def broker_ids(self) -> Container[int]:
        """The brokers with open connections."""
        return self._sessions.keys()

    def on_heartbeat(self, broker_id: int, session: Session) -> None:
        if self._sessions.get(broker_id) is not session:
            self._sessions[broker_id] = session
            session.call_on_close(lambda closed: self._on_close(broker_id, closed))

    def _on_close(self, broker_id: int, session: Session) -> None:
        if self._sessions.get(broker_id) is not session:
            return
        del self._sessions[broker_id]
        if self._leadership.is_here:
            self._leadership.submit(
                lambda machine, now_ms: machine.brokers.suspect_broker(broker_id, now_ms)
            )
            self._look_at(broker_id)
