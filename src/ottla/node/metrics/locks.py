"""Logins, throttled clients, and the expiry of certificates."""

from collections.abc import Iterator

from ottla.network.counters import NetworkCounters
from ottla.node.locks import Locks
from ottla.node.metrics.family import Section
from ottla.security.client_quotas import ClientQuotas

SECTION = Section("Locks and quotas")

_HANDSHAKES = SECTION.counter(
    "ottla_tls_handshakes_total",
    "TLS handshakes of clients and nodes. Failed ones are in ottla_connections_refused_total.",
    ("kind",),
)
_LOGINS = SECTION.counter(
    "ottla_logins_total",
    "Logins, by SASL mechanism. Failed ones are in ottla_connections_refused_total.",
    ("mechanism",),
)
_CERTIFICATES = SECTION.gauge(
    "ottla_certificate_expiry_timestamp_seconds",
    "When a listener's certificate, or the first of its chain, expires, in seconds since 1970. "
    "Needs ottla[secure].",
    ("listener",),
)
_THROTTLES = SECTION.counter(
    "ottla_throttles_total", "Requests whose clients were throttled by a quota.", ("quota",)
)
_THROTTLED = SECTION.counter(
    "ottla_throttled_seconds_total", "How long clients were throttled by quotas.", ("quota",)
)
_ACCEPT_PAUSES = SECTION.counter(
    "ottla_accept_pauses_total",
    "Times that accepting connections paused because they came too fast: "
    "max.connection.creation.rate.",
)


def collect(network: NetworkCounters, quotas: ClientQuotas, locks: Locks) -> Iterator[str]:
    throttles = quotas.throttles
    kinds = (("full", network.handshakes_full), ("resumed", network.handshakes_resumed))
    yield from _HANDSHAKES.by(kinds)
    yield from _LOGINS.by(sorted(network.logins.items()))
    yield from _CERTIFICATES.by(sorted(locks.certificates_end().items()))
    yield from _THROTTLES.by((key, throttle.count) for key, throttle in throttles.items())
    yield from _THROTTLED.by((key, throttle.total_ms / 1000) for key, throttle in throttles.items())
    yield from _ACCEPT_PAUSES.line(network.accept_pauses)
