"""Brokers that were fenced a moment ago, of which clients are told a little longer.

A client that hears at once that a broker is gone and that its partitions have new leaders may drop
the partitions with the broker, and look for their leaders only later: librdkafka does, and stands
still for a second. Worse, it never asks again for the coordinator of a group that it knew to be on
such a broker until any of its connections comes or goes: a transaction with offsets stands still.
Kafka tells of a broker that died for 9 s, since it notices only then; a node that is restarted
meanwhile was never gone for its clients.
"""

from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import FENCE, BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.runtime.clock import Clock

LISTED_MS: Final = 10_000.0


class FencedBrokers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: set[int] = set()  # One that registers for the first time is told of later.
        self._fenced_at_ms: dict[int, float] = {}

    def load(self, image: MetadataImage) -> None:
        """When they were fenced is not known: it may have been just now, as when all restart."""
        self._known = set(image.brokers)
        for broker_id, broker in image.brokers.items():
            if broker.fenced:
                self._fence(broker_id)

    def on_record(self, record: object, _: MetadataImage) -> None:
        if isinstance(record, BrokerRegistrationChangeRecord):
            if record.fenced == FENCE:
                self._fence(record.broker_id)
        elif isinstance(record, RegisterBrokerRecord):
            if record.broker_id in self._known:
                self._fence(record.broker_id)
            self._known.add(record.broker_id)

    def recent(self) -> set[int]:
        if not self._fenced_at_ms:
            return set()
        since_ms = self._clock.monotonic_ms() - LISTED_MS
        self._fenced_at_ms = {
            broker_id: at_ms for broker_id, at_ms in self._fenced_at_ms.items() if at_ms > since_ms
        }
        return set(self._fenced_at_ms)

    def _fence(self, broker_id: int) -> None:
        self._fenced_at_ms[broker_id] = self._clock.monotonic_ms()
