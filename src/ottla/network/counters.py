"""Socket counters, as plain integers that the node exports as metrics."""

import ssl
from dataclasses import field

from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True)
class NetworkCounters:
    """Only `connections_open` and `sessions_paused` ever decrease."""

    connections_open: int = 0
    connections_accepted: int = 0
    connections_refused: dict[str, int] = field(default_factory=dict)  # By reason.
    handshakes_full: int = 0  # Of TLS.
    handshakes_resumed: int = 0
    logins: dict[str, int] = field(default_factory=dict)  # By SASL mechanism.
    accept_pauses: int = 0  # Because connections exceeded the broker's rate.
    connections_closed_idle: int = 0
    connections_closed_stalled: int = 0  # Half a request, or unread responses, without progress.
    frames: int = 0
    frames_malformed: int = 0
    dispatch_failures: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bytes_sent_by_sendfile: int = 0  # Part of bytes_out.
    file_reads_in_thread: int = 0
    sessions_paused: int = 0  # Not read at this moment, because one of their bounds is exceeded.
    pauses: int = 0
    memory_waits: int = 0  # Pauses because memory for requests was short.

    def shake_hands(self, connection: ssl.SSLObject | None) -> None:
        if connection is not None and connection.session_reused:
            self.handshakes_resumed += 1
        else:
            self.handshakes_full += 1

    def log_in(self, mechanism: str) -> None:
        self.logins[mechanism] = self.logins.get(mechanism, 0) + 1

    def refuse(self, reason: str) -> None:
        self.connections_refused[reason] = self.connections_refused.get(reason, 0) + 1
