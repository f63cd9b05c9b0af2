"""Connections, requests, and the event loop that serves them."""

from collections.abc import Iterator, Mapping

from ottla.handlers.api import FOLLOWER_FETCH_KEY, FOLLOWER_FETCH_NAME
from ottla.handlers.table import API_TABLE
from ottla.network.counters import NetworkCounters
from ottla.network.durations import ApiCounters
from ottla.network.server import Server
from ottla.node.metrics.family import Section, labelled
from ottla.node.metrics.loop_lag import LoopLag
from ottla.protocol.errors import ErrorCode
from ottla.replication.manager import ReplicaManager

SECTION = Section("Connections and requests")

_LOOP_LAG = SECTION.gauge(
    "ottla_event_loop_lag_seconds", "The longest delay of the event loop in the last 30 seconds."
)
_CONNECTIONS = SECTION.gauge("ottla_connections", "Open connections.")
_PAUSED = SECTION.gauge(
    "ottla_connections_paused",
    "Connections that are not being read because one of their limits is reached.",
)
_ACCEPTED = SECTION.counter("ottla_connections_accepted_total", "Accepted connections.")
_REFUSED = SECTION.counter(
    "ottla_connections_refused_total",
    "Connections that were refused or failed.",
    ("reason",),
)
_CLOSED = SECTION.counter(
    "ottla_connections_closed_total",
    "Connections that the node closed: idle, or stalled in the middle of a request or a response.",
    ("reason",),
)
_RECEIVED = SECTION.counter("ottla_received_bytes_total", "Bytes received.")
_SENT = SECTION.counter("ottla_sent_bytes_total", "Bytes sent.")
_SENDFILE = SECTION.counter(
    "ottla_sendfile_bytes_total",
    "Bytes sent from file to socket in the kernel.",
)
_REQUESTS = SECTION.counter(
    "ottla_requests_total",
    "Finished requests. Fetches of other brokers are FetchFollower.",
    ("api",),
)
_DURATION = SECTION.histogram(
    "ottla_request_duration_seconds",
    "From the receipt of a request to its response, waits included: a produce for replicas and "
    "the disk, a fetch for records, a join for other members.",
    ("api",),
)
_ERRORS = SECTION.counter(
    "ottla_request_errors_total",
    "Errors in responses, by API and error code; one for each topic, partition or group refused.",
    ("api", "error"),
)
_MALFORMED = SECTION.counter(
    "ottla_requests_malformed_total",
    "Requests that broke the protocol; their connections were closed.",
)
_FAILED = SECTION.counter(
    "ottla_requests_failed_total",
    "Requests that failed because of a fault in the broker; its log has the details.",
)
_WAITING = SECTION.gauge(
    "ottla_requests_waiting",
    "Produce requests waiting for replicas or the disk, and consumer fetches waiting for records.",
    ("api",),
)
_MEMORY_USED = SECTION.gauge(
    "ottla_request_memory_bytes", "Memory used by requests and unsent responses."
)
_MEMORY_LIMIT = SECTION.gauge(
    "ottla_request_memory_limit_bytes", "The limit of that memory: queued.max.request.bytes."
)
_MEMORY_WAITS = SECTION.counter(
    "ottla_memory_waits_total",
    "Times that a connection waited because memory for requests was short.",
)
_MISSES = SECTION.counter(
    "ottla_page_cache_misses_total",
    "Reads for consumers that waited for the disk in a thread, to find the records or to send "
    "them.",
    ("step",),
)


def collect(
    server: Server,
    apis: Mapping[int, ApiCounters],
    replicas: ReplicaManager,
    loop_lag: LoopLag,
    *,
    memory_limit: int,
) -> Iterator[str]:
    network = server.counters
    yield from _LOOP_LAG.line(loop_lag.worst_s)
    yield from _connections(network)
    yield from _requests(apis)
    yield from _MALFORMED.line(network.frames_malformed)
    yield from _FAILED.line(network.dispatch_failures)
    waiting = (
        ("Produce", len(replicas.delayed_produces)),
        ("Fetch", replicas.counters.fetches_waiting),
    )
    yield from _WAITING.by(waiting)
    yield from _MEMORY_USED.line(server.queued_bytes)
    yield from _MEMORY_LIMIT.line(memory_limit)
    yield from _MEMORY_WAITS.line(network.memory_waits)
    misses = (
        ("find", replicas.counters.fetches_from_disk),
        ("send", network.file_reads_in_thread),
    )
    yield from _MISSES.by(misses)


def _connections(network: NetworkCounters) -> Iterator[str]:
    yield from _CONNECTIONS.line(network.connections_open)
    yield from _PAUSED.line(network.sessions_paused)
    yield from _ACCEPTED.line(network.connections_accepted)
    yield from _REFUSED.by(list(network.connections_refused.items()))
    closed = (
        ("idle", network.connections_closed_idle),
        ("stalled", network.connections_closed_stalled),
    )
    yield from _CLOSED.by(closed)
    yield from _RECEIVED.line(network.bytes_in)
    yield from _SENT.line(network.bytes_out)
    yield from _SENDFILE.line(network.bytes_sent_by_sendfile)


def _requests(apis: Mapping[int, ApiCounters]) -> Iterator[str]:
    named = [(_api_name(key), api) for key, api in sorted(apis.items()) if api.requests]
    yield from _REQUESTS.by((name, api.requests) for name, api in named)
    yield from _DURATION.histogram(((name,), api) for name, api in named)
    yield from _ERRORS.lines(
        (labelled(_ERRORS.labels, (name, _error_name(code))), count)
        for name, api in named
        for code, count in list(api.errors.items())
    )


def _api_name(key: int) -> str:
    return FOLLOWER_FETCH_NAME if key == FOLLOWER_FETCH_KEY else API_TABLE[key].name


def _error_name(code: int) -> str:
    try:
        return ErrorCode(code).name.upper()
    except ValueError:
        return str(code)
