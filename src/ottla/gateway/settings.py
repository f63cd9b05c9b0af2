"""What a gateway is told at its start. Every limit is here."""

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
    BASIC = "basic"  # A user of the brokers, by HTTP Basic.


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    bootstrap_servers: str
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT  # 0 takes a free one.
    # How to log in to the brokers, as librdkafka spells it.
    login: Mapping[str, Any] = field(default_factory=dict, repr=False)
    auth: Auth = Auth.NONE
    # Passwords of users who sign requests, as SQS clients do, beside `auth`.
    signers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls_certificate: Path | None = None  # PEM, with its chain; None: HTTP without TLS.
    tls_key: Path | None = None  # None: in the file of the certificate.
    admin_port: int | None = None  # For health, metrics and administration; None: `port`.
    node_metrics: str | None = None  # URL of a node's metrics, which are served too.
    secret_file: Path | None = None  # None: the secret that the cluster keeps.
    webhook_allow: tuple[str, ...] = ()  # Private networks that webhooks may call.

    body_bytes_max: int = 16 * 1024 * 1024  # Of a request that is not a stream.
    record_bytes_max: int = 1024 * 1024  # Of a line of a stream.
    batch_records_max: int = 10_000  # In one request that is not a stream.
    connections_max: int = 20_000
    users_max: int = 200  # Logged in at a time, each with connections of its own.
    idle_s: float = 75.0  # Of a connection between requests, and of a body that stops coming.
    drain_s: float = 25.0  # For requests to end after SIGTERM.

    publish_timeout_ms: int = 30_000  # From the queue to the acknowledgement.
    queue_records_max: int = 100_000  # Published and not yet acknowledged.
    queue_bytes_max: int = 256 * 1024 * 1024
    stream_in_flight_max: int = 1_000  # Records of one stream that are not yet acknowledged.

    read_records_max: int = 10_000  # In one answer.
    read_bytes_max: int = 8 * 1024 * 1024
    read_wait_ms_max: int = 60_000
    waiting_reads_max: int = 500

    idempotency_window_s: int = 3_600

    def access(self) -> Access:
        return Access(self.bootstrap_servers, self.login)
