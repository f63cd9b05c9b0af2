"""Limits the number of connections, in total and per address."""

from collections.abc import Mapping


class ConnectionLimits:
    def __init__(self, total_max: int, per_ip_max: int, overrides: Mapping[str, int]) -> None:
        self._count = 0
        self._counts: dict[str, int] = {}  # Only addresses with connections.
        self.set(total_max, per_ip_max, overrides)

    def set(self, total_max: int, per_ip_max: int, overrides: Mapping[str, int]) -> None:
        """Existing connections stay, even if there are too many now."""
        self._total_max = total_max
        self._per_ip_max = per_ip_max
        self._overrides = dict(overrides)

    def admit(self, address: str) -> str | None:
        """Count one more connection, or return the key of the limit that forbids it."""
        if self._count >= self._total_max:
            return "max.connections"
        count = self._counts.get(address, 0)
        if count >= self._overrides.get(address, self._per_ip_max):
            return "max.connections.per.ip"
        self._counts[address] = count + 1
        self._count += 1
        return None

    def release(self, address: str) -> None:
        self._count -= 1
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]
