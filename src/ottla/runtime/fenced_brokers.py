"""Brokers that were fenced a moment ago, of which clients are told a little longer.

A client that hears at once that a broker is gone and that its partitions have new leaders may drop
the partitions with the broker, and look for their leaders only later: librdkafka does, and stands
still for a second. Kafka tells of a broker that died for longer, since it notices later.
"""

from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import FENCE, BrokerRegistrationChangeRecord
from ottla.runtime.clock import Clock

LISTED_MS: Final = 3_000.0


class FencedBrokers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._fenced_at_ms: dict[int, float] = {}

    def load(self, _: MetadataImage) -> None:
        """When they were fenced is not known."""
        self._fenced_at_ms.clear()

    def on_record(self, record: object, _: MetadataImage) -> None:
        if isinstance(record, BrokerRegistrationChangeRecord) and record.fenced == FENCE:
            self._fenced_at_ms[record.broker_id] = self._clock.monotonic_ms()

    def recent(self) -> set[int]:
        if not self._fenced_at_ms:
            return set()
        since_ms = self._clock.monotonic_ms() - LISTED_MS
        self._fenced_at_ms = {
            broker_id: at_ms for broker_id, at_ms in self._fenced_at_ms.items() if at_ms > since_ms
        }
        return set(self._fenced_at_ms)
