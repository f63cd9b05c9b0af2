"""Limits the connection rate, in total and per address (KIP-612).

Beyond the rate of an address a new connection is held for as long as the rate is exceeded, and then
closed: retrying at once gains nothing. Beyond the rate of the broker nothing is accepted for that
long, and new connections wait in the kernel.
"""

from collections.abc import Callable
from typing import Final

from ottla.security.rates import Rate, Windows

ADDRESSES_UNSWEPT_MAX: Final = 1_000  # At more than twice the last count, idle ones are dropped.


class ConnectionRates:
    def __init__(self, windows: Windows, bound: float, monotonic_ms: Callable[[], float]) -> None:
        self.of_address: Callable[[str], float | None] = lambda _: None  # No limit.
        self._windows = windows
        self.bound = bound  # Of all connections together, per second.
        self._monotonic_ms = monotonic_ms
        self._total = Rate(windows)
        self._by_address: dict[str, Rate] = {}
        self._addresses_max = ADDRESSES_UNSWEPT_MAX

    def throttle_ms(self, address: str) -> int:
        """Count a connection of this address; returns how long it is too many, or 0. In the first
        case it does not count."""
        bound = self.of_address(address)
        if bound is None:
            return 0
        now_ms = self._monotonic_ms()
        rate = self._by_address.get(address)
        if rate is None:
            if len(self._by_address) >= self._addresses_max:
                self._sweep(now_ms)
            rate = self._by_address[address] = Rate(self._windows)
        rate.record(1, now_ms)
        throttle_ms = min(rate.excess_ms(bound, now_ms), self._windows.size_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
        return throttle_ms

    def pause_ms(self) -> int:
        """Count a connection; returns for how long no other may be accepted."""
        now_ms = self._monotonic_ms()
        self._total.record(1, now_ms)
        return min(self._total.excess_ms(self.bound, now_ms), self._windows.size_ms)

    @property
    def addresses(self) -> int:
        return len(self._by_address)

    def _sweep(self, now_ms: float) -> None:
        self._by_address = {
            address: rate for address, rate in self._by_address.items() if not rate.is_idle(now_ms)
        }
        self._addresses_max = 2 * len(self._by_address) + ADDRESSES_UNSWEPT_MAX
