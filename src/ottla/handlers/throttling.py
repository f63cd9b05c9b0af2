"""Throttles clients that are over a quota: they are answered, told for how long, and muted.

Brokers are not throttled. Nothing here is called while there is no quota.
"""

import dataclasses
from time import monotonic_ns
from typing import Any, Final

from ottla.handlers.broker import Broker
from ottla.network.session import Session
from ottla.protocol.times import in_milliseconds, milliseconds
from ottla.security.client_quotas import ClientQuotas, SessionQuotas
from ottla.security.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

# The controller has counted what these create and delete.
_MUTATION_KEYS: Final = frozenset({19, 20, 37})
_SHARE_FETCH_KEY: Final = 78
# Their responses already have a throttle time when they arrive here.
_COUNTED_KEYS: Final = _MUTATION_KEYS | {_SHARE_FETCH_KEY}
_NS_PER_PERCENT: Final = 10_000_000.0  # Of a second.
THROTTLE_MS_MAX: Final = 2**31 - 1


def throttle_produce(broker: Broker, session: Session, client_id: str | None, size: int) -> int:
    """Count a produce request; returns the throttle time."""
    known, now_ms = _known(broker, session, client_id)
    of_bytes = 0 if known.produce is None else known.produce.count(size, now_ms)
    return _mute(broker.quotas, session, known, PRODUCER_BYTE_RATE, of_bytes, now_ms)


def throttle_fetch(broker: Broker, session: Session, client_id: str | None, size: int) -> int:
    """Count a response's records; returns the throttle time, with which none may be sent."""
    known, now_ms = _known(broker, session, client_id)
    of_bytes = 0 if known.fetch is None else known.fetch.count_if_allowed(size, now_ms)
    return _mute(broker.quotas, session, known, CONSUMER_BYTE_RATE, of_bytes, now_ms)


def count_shared(broker: Broker, session: Session, client_id: str | None, size: int) -> int:
    """Count the records that a share group has delivered; returns the throttle time. They are sent
    in any case, because they are locked for the client."""
    known, now_ms = _known(broker, session, client_id)
    throttle_ms = 0 if known.fetch is None else known.fetch.count(size, now_ms)
    if throttle_ms:
        broker.quotas.on_throttled(CONSUMER_BYTE_RATE, throttle_ms)
    return min(throttle_ms, THROTTLE_MS_MAX)


def throttle_request(broker: Broker, session: Session, client_id: str | None) -> int:
    """Count the time that a request has taken; returns the throttle time."""
    known, now_ms = _known(broker, session, client_id)
    return _mute(broker.quotas, session, known, REQUEST_PERCENTAGE, 0, now_ms)


def fetch_bytes_max(broker: Broker, session: Session, client_id: str | None) -> int:
    """More would be throttled for certain."""
    known, _ = _known(broker, session, client_id)
    if known.fetch is None:
        return broker.settings.fetch_bytes_max
    windows = broker.quotas.windows
    allowed_s = (windows.number - 1) * windows.size_ms / 1000
    return min(broker.settings.fetch_bytes_max, int(known.fetch.bound * allowed_s))


def throttled(
    broker: Broker, session: Session, api_key: int, client_id: str | None, response: Any
) -> Any:
    """The response of a cold API, with its throttle time."""
    if session.receiver.is_peer:
        return response
    throttle_ms = throttle_request(broker, session, client_id)
    if api_key in _COUNTED_KEYS:
        counted_ms = in_milliseconds(response.throttle_time)
        if counted_ms > throttle_ms:
            if api_key in _MUTATION_KEYS:
                broker.quotas.on_throttled(CONTROLLER_MUTATION_RATE, counted_ms)
            session.receiver.mute(counted_ms)
            throttle_ms = counted_ms
    if not throttle_ms or not hasattr(response, "throttle_time"):
        return response
    return dataclasses.replace(response, throttle_time=milliseconds(throttle_ms))


def begin_request(quotas: ClientQuotas) -> None:
    quotas.lap_ns = monotonic_ns()


def end_request(broker: Broker, session: Session, client_id: str | None) -> None:
    """Time since the response was made counts for the next request."""
    known, now_ms = _known(broker, session, client_id)
    if known.request is not None and not session.receiver.is_peer:
        known.request.rate.record(_lap(broker.quotas), now_ms)
    broker.quotas.lap_ns = 0


def _known(broker: Broker, session: Session, client_id: str | None) -> tuple[SessionQuotas, float]:
    now_ms = broker.process.clock.monotonic_ms()
    known = broker.quotas.of(session.quotas, session.principal.name, client_id, now_ms)
    session.quotas = known
    return known, now_ms


def _mute(
    quotas: ClientQuotas,
    session: Session,
    known: SessionQuotas,
    key: str,
    of_bytes: int,
    now_ms: float,
) -> int:
    of_time = 0
    if known.request is not None:  # At most one window, as in Kafka.
        of_time = min(known.request.count(_lap(quotas), now_ms), quotas.windows.size_ms)
    throttle_ms = min(max(of_bytes, of_time), THROTTLE_MS_MAX)
    if throttle_ms:
        quotas.on_throttled(key if of_bytes > of_time else REQUEST_PERCENTAGE, throttle_ms)
        session.receiver.mute(throttle_ms)
    return throttle_ms


def _lap(quotas: ClientQuotas) -> float:
    """The time since the last call that the current request has taken, in percent of a second; 0 if
    the response comes after the handler has returned."""
    if not quotas.lap_ns:
        return 0.0
    now_ns = monotonic_ns()
    since_ns, quotas.lap_ns = quotas.lap_ns, now_ns
    return (now_ns - since_ns) / _NS_PER_PERCENT
