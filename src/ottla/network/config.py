"""The broker's socket settings, and their validated values in one object."""

import ipaddress
from collections.abc import Mapping
from dataclasses import field

from ottla.network.endpoints import Endpoint, parse_advertised_listeners, parse_listeners
from ottla.protocol.config import (
    ConfigKey,
    ConfigValues,
    at_least,
    declared_keys,
    int_key,
    list_key,
    long_key,
    read_by,
    string_key,
)
from ottla.protocol.lazy_dataclass import dataclass
from ottla.security.rates import Windows

_UNLIMITED = 2_147_483_647


def parse_overrides(text: str) -> dict[str, int]:
    """`address:count,address:count`; IPv6 addresses may be in brackets."""
    overrides: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        host, _, count = item.rpartition(":")
        if not count.isdecimal():
            raise ValueError(f"{item!r} is not of the form address:count")
        try:
            address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            raise ValueError(f"{item!r} has {host!r}, which is no IP address") from None
        overrides[str(address)] = int(count)
    return overrides


def _buffer_size_problem(value: int) -> str | None:
    return None if value == -1 or value >= 1 else "must be -1 (the system's choice) or positive"


LISTENERS: ConfigKey[tuple[str, ...]] = list_key(
    "listeners",
    ("PLAINTEXT://localhost:9092",),
    "Where the broker listens: NAME://host:port, comma-separated. By default only this machine "
    "can connect, because there is no authentication. An empty host means all interfaces, port 0 "
    "any free port.",
    read_by(parse_listeners),
)
ADVERTISED_LISTENERS: ConfigKey[tuple[str, ...]] = list_key(
    "advertised.listeners",
    (),
    "The addresses that clients are told to connect to, by listener name. A listener that is not "
    "named here advertises its own address.",
    read_by(parse_advertised_listeners),
)
SOCKET_REQUEST_MAX_BYTES = int_key(
    "socket.request.max.bytes",
    104_857_600,
    "The largest accepted request; a connection that announces a larger one is closed.",
    at_least(1),
)
SOCKET_SEND_BUFFER_BYTES = int_key(
    "socket.send.buffer.bytes",
    102_400,
    "SO_SNDBUF of client sockets. -1 lets the operating system choose and adapt, which is better "
    "over long distances; locally, a small buffer keeps pace with the reader and costs less.",
    _buffer_size_problem,
)
SOCKET_RECEIVE_BUFFER_BYTES = int_key(
    "socket.receive.buffer.bytes",
    -1,
    "SO_RCVBUF of client sockets. -1 lets the operating system choose and adapt (Kafka's default,"
    " 102400, turns that off).",
    _buffer_size_problem,
)
SOCKET_LISTEN_BACKLOG_SIZE = int_key(
    "socket.listen.backlog.size",
    1_024,
    "How many connections may wait to be accepted; the operating system may allow fewer. (Kafka's"
    " default is 50, which makes clients wait when many reconnect at once.)",
    at_least(1),
)
MAX_CONNECTIONS = int_key(
    "max.connections",
    _UNLIMITED,
    "Maximum number of connections; others are closed at once.",
    at_least(0),
    dynamic=True,
)
MAX_CONNECTIONS_PER_IP = int_key(
    "max.connections.per.ip",
    _UNLIMITED,
    "Maximum number of connections from one IP address; others are closed at once.",
    at_least(0),
    dynamic=True,
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = string_key(
    "max.connections.per.ip.overrides",
    "",
    "Exceptions to max.connections.per.ip, such as 10.0.0.7:100,127.0.0.1:200.",
    read_by(parse_overrides),
    dynamic=True,
)
MAX_CONNECTION_CREATION_RATE = int_key(
    "max.connection.creation.rate",
    _UNLIMITED,
    "How many new connections are accepted per second; others wait. The rate per address is a "
    "quota: connection_creation_rate.",
    at_least(1),
    dynamic=True,
)
QUOTA_WINDOW_NUM = int_key(
    "quota.window.num",
    11,
    "Number of windows over which quota rates are measured.",
    at_least(1),
)
QUOTA_WINDOW_SIZE_SECONDS = int_key(
    "quota.window.size.seconds",
    1,
    "Size of one window of quota rates.",
    at_least(1),
)
CONNECTIONS_MAX_IDLE_MS = long_key(
    "connections.max.idle.ms",
    600_000,
    "An idle connection is closed after this long; -1 for never.",
    at_least(-1),
)
QUEUED_MAX_REQUEST_BYTES = long_key(
    "queued.max.request.bytes",
    268_435_456,
    "Maximum memory for the requests and responses of all connections. The broker stops reading "
    "from a connection that holds more than is left; an eighth is reserved for other brokers. "
    "Requests that could not be completed otherwise may exceed the limit, together by "
    "socket.request.max.bytes. -1 for no limit (Kafka's default).",
    at_least(-1),
)
REQUEST_RECEIVE_TIMEOUT_MS = long_key(
    "request.receive.timeout.ms",
    600_000,
    "How long a request may take to arrive before its connection is closed; -1 for no limit.",
    at_least(-1),
)
REQUEST_RECEIVE_RATE_MIN = int_key(
    "request.receive.bytes.per.second.min",
    1_024,
    "The lowest rate at which a request may arrive, once it has taken longer than "
    "request.receive.grace.ms.",
    at_least(0),
)
REQUEST_RECEIVE_GRACE_MS = long_key(
    "request.receive.grace.ms",
    60_000,
    "How long a request may arrive more slowly than request.receive.bytes.per.second.min before "
    "its connection is closed. While memory is short (queued.max.request.bytes) it is a tenth, "
    "and also applies to connections that do not read their responses.",
    at_least(1),
)
CONNECTION_PENDING_REQUESTS_MAX = int_key(
    "connection.pending.requests.max",
    1_000,
    "Maximum number of pending requests on one connection; the broker stops reading from it until"
    " they are answered.",
    at_least(1),
)
CONNECTION_PENDING_REQUEST_BYTES_MAX = int_key(
    "connection.pending.request.bytes.max",
    67_108_864,
    "Maximum bytes of pending requests on one connection; the broker stops reading from it until "
    "they are answered.",
    at_least(1),
)
CONNECTION_UNSENT_BYTES_MAX = int_key(
    "connection.unsent.bytes.max",
    65_536,
    "Maximum bytes of unsent responses on one connection; the broker stops reading from it until "
    "the client has read them. Records sent directly from files do not count.",
    at_least(1),
)

BROKER_KEYS = declared_keys(globals())


_DEFAULT_WINDOWS = Windows(QUOTA_WINDOW_NUM.default, QUOTA_WINDOW_SIZE_SECONDS.default * 1000)


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    listeners: tuple[Endpoint, ...] = parse_listeners(LISTENERS.default)
    advertised_listeners: tuple[Endpoint, ...] = ()
    request_bytes_max: int = SOCKET_REQUEST_MAX_BYTES.default
    send_buffer_bytes: int = SOCKET_SEND_BUFFER_BYTES.default
    receive_buffer_bytes: int = SOCKET_RECEIVE_BUFFER_BYTES.default
    listen_backlog: int = SOCKET_LISTEN_BACKLOG_SIZE.default
    connections_max: int = MAX_CONNECTIONS.default
    connections_per_ip_max: int = MAX_CONNECTIONS_PER_IP.default
    connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    connection_rate_max: int = MAX_CONNECTION_CREATION_RATE.default
    quota_windows: Windows = _DEFAULT_WINDOWS
    idle_ms_max: int = CONNECTIONS_MAX_IDLE_MS.default
    queued_bytes_max: int = QUEUED_MAX_REQUEST_BYTES.default
    receive_timeout_ms: int = REQUEST_RECEIVE_TIMEOUT_MS.default
    receive_rate_min: int = REQUEST_RECEIVE_RATE_MIN.default
    receive_grace_ms: int = REQUEST_RECEIVE_GRACE_MS.default
    pending_requests_max: int = CONNECTION_PENDING_REQUESTS_MAX.default
    pending_request_bytes_max: int = CONNECTION_PENDING_REQUEST_BYTES_MAX.default
    unsent_bytes_max: int = CONNECTION_UNSENT_BYTES_MAX.default

    @classmethod
    def of(cls, values: ConfigValues) -> "NetworkConfig":
        listeners: tuple[str, ...] = values[LISTENERS]
        advertised: tuple[str, ...] = values[ADVERTISED_LISTENERS]
        return cls(
            listeners=parse_listeners(listeners),
            advertised_listeners=parse_advertised_listeners(advertised),
            request_bytes_max=values[SOCKET_REQUEST_MAX_BYTES],
            send_buffer_bytes=values[SOCKET_SEND_BUFFER_BYTES],
            receive_buffer_bytes=values[SOCKET_RECEIVE_BUFFER_BYTES],
            listen_backlog=values[SOCKET_LISTEN_BACKLOG_SIZE],
            connections_max=values[MAX_CONNECTIONS],
            connections_per_ip_max=values[MAX_CONNECTIONS_PER_IP],
            connections_per_ip_overrides=parse_overrides(values[MAX_CONNECTIONS_PER_IP_OVERRIDES]),
            connection_rate_max=values[MAX_CONNECTION_CREATION_RATE],
            quota_windows=Windows(
                values[QUOTA_WINDOW_NUM], values[QUOTA_WINDOW_SIZE_SECONDS] * 1000
            ),
            idle_ms_max=values[CONNECTIONS_MAX_IDLE_MS],
            queued_bytes_max=values[QUEUED_MAX_REQUEST_BYTES],
            receive_timeout_ms=values[REQUEST_RECEIVE_TIMEOUT_MS],
            receive_rate_min=values[REQUEST_RECEIVE_RATE_MIN],
            receive_grace_ms=values[REQUEST_RECEIVE_GRACE_MS],
            pending_requests_max=values[CONNECTION_PENDING_REQUESTS_MAX],
            pending_request_bytes_max=values[CONNECTION_PENDING_REQUEST_BYTES_MAX],
            unsent_bytes_max=values[CONNECTION_UNSENT_BYTES_MAX],
        )
