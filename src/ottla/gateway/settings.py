"""Start-up settings of a gateway. Every limit is here."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ottla.gateway.core.access import Access

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8080


class Auth(enum.StrEnum):
    NONE = "none"  # Everyone is the gateway's own user.
    BASIC = "basic"  # A broker user, by HTTP Basic.


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    bootstrap_servers: str
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT  # 0 picks a free port.
    # Broker login settings, as librdkafka spells them.
    login: Mapping[str, Any] = field(default_factory=dict, repr=False)
    auth: Auth = Auth.NONE
    # Passwords of users who sign requests, as SQS clients do, in addition to `auth`.
    signers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls_certificate: Path | None = None  # PEM with its chain; None: HTTP without TLS.
    tls_key: Path | None = None  # None: in the certificate's file.
    admin_port: int | None = None  # For health, metrics and administration; None: `port`.
    node_metrics: str | None = None  # URL of a node's metrics, to be served as well.
    secret_file: Path | None = None  # None: the secret kept in the cluster.
    webhook_allow: tuple[str, ...] = ()  # Private networks that webhooks may call.

    body_bytes_max: int = 16 * 1024 * 1024  # Per request that is not a stream.
    record_bytes_max: int = 1024 * 1024  # Per line of a stream.
    batch_records_max: int = 10_000  # Per request that is not a stream.
    connections_max: int = 20_000
    users_max: int = 200  # Logged in at once, each with connections of its own.
    idle_s: float = 75.0  # Without a request on a connection, or without progress in a body.
    drain_s: float = 25.0  # For requests to finish after SIGTERM.

    publish_timeout_ms: int = 30_000  # From the queue to the acknowledgement.
    queue_records_max: int = 100_000  # Published, not yet acknowledged.
    queue_bytes_max: int = 256 * 1024 * 1024
    stream_in_flight_max: int = 1_000  # Unacknowledged records per stream.

    read_records_max: int = 10_000  # Per answer.
    read_bytes_max: int = 8 * 1024 * 1024
    read_wait_ms_max: int = 60_000
    waiting_reads_max: int = 500

    idempotency_window_s: int = 3_600

    def access(self) -> Access:
        return Access(self.bootstrap_servers, self.login)
