"""How much clients have used of their quotas, and how long they must be throttled.

Nothing is rejected: a client over its quota is answered, and then muted for as long as it takes for
its rate to fall to the quota (KIP-219). A session keeps its `SessionQuotas`, so that its client is
looked up only once, and again only after a quota change.
"""

from typing import Final, NamedTuple

from ottla.security.quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    QuotaKey,
    Quotas,
)
from ottla.security.rates import Rate, Windows

METERED_KEYS: Final = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE)
METERS_UNSWEPT_MAX: Final = 1_000  # At more than twice the last count, idle ones are dropped.


class Meter:
    """The usage of one quota, by all who share it."""

    __slots__ = ("bound", "rate")

    def __init__(self, windows: Windows) -> None:
        self.rate = Rate(windows)
        self.bound = 0.0

    def count(self, value: float, now_ms: float) -> int:
        """Returns the throttle time."""
        self.rate.record(value, now_ms)
        return self.rate.excess_ms(self.bound, now_ms)

    def count_if_allowed(self, value: float, now_ms: float) -> int:
        """Returns the throttle time; what was not allowed does not count.

        Anything larger than all that the windows allow passes when they are empty. (In Kafka it
        never does.)
        """
        if self.rate.is_idle(now_ms):
            self.rate.record(value, now_ms)
            return 0
        throttle_ms = self.count(value, now_ms)
        if throttle_ms:
            self.rate.record(-value, now_ms)
        return throttle_ms


class SessionQuotas(NamedTuple):
    """None: no limit."""

    version: int
    client_id: str | None
    produce: Meter | None
    fetch: Meter | None
    request: Meter | None


class Throttles:
    """How often, and for how long in total, clients were throttled for one key."""

    __slots__ = ("count", "total_ms")

    def __init__(self) -> None:
        self.count = self.total_ms = 0


class ClientQuotas:
    def __init__(self, windows: Windows) -> None:
        self.enabled = False  # Some client has a quota.
        self.lap_ns = 0  # Start of the current request's processing time; 0 for none.
        self.throttles = {key: Throttles() for key in (*METERED_KEYS, CONTROLLER_MUTATION_RATE)}
        self.windows = windows
        self._version = 0
        self._keys = [QuotaKey({}, key) for key in METERED_KEYS]
        self._meters: dict[tuple[str, str | None, str | None], Meter] = {}
        self._meters_max = METERS_UNSWEPT_MAX

    def load(self, quotas: Quotas) -> None:
        """Applies from now on; past usage still counts."""
        self._keys = [QuotaKey(quotas, key) for key in METERED_KEYS]
        self.enabled = any(self._keys) or bool(QuotaKey(quotas, CONTROLLER_MUTATION_RATE))
        self._version += 1

    def of(
        self, known: SessionQuotas | None, user: str, client_id: str | None, now_ms: float
    ) -> SessionQuotas:
        """`known` is the previous result for the session."""
        if known is not None and known[0] == self._version and known[1] == client_id:
            return known
        if len(self._meters) >= self._meters_max:
            self._sweep(now_ms)
        meters = [self._meter(key, user, client_id or "") for key in range(len(METERED_KEYS))]
        return SessionQuotas(self._version, client_id, *meters)

    def on_throttled(self, key: str, throttle_ms: int) -> None:
        throttles = self.throttles[key]
        throttles.count += 1
        throttles.total_ms += throttle_ms

    @property
    def meters(self) -> int:
        return len(self._meters)

    def _meter(self, index: int, user: str, client_id: str) -> Meter | None:
        allowance = self._keys[index].of_client(user, client_id)
        if allowance is None:
            return None
        key = (METERED_KEYS[index], allowance.user, allowance.client_id)
        meter = self._meters.get(key)
        if meter is None:
            meter = self._meters[key] = Meter(self.windows)
        meter.bound = allowance.bound
        return meter

    def _sweep(self, now_ms: float) -> None:
        """Sessions must not go on counting on a meter that is forgotten, so they look again."""
        self._meters = {
            key: meter for key, meter in self._meters.items() if not meter.rate.is_idle(now_ms)
        }
        self._meters_max = 2 * len(self._meters) + METERS_UNSWEPT_MAX
        self._version += 1
