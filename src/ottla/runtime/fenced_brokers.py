"""Recently fenced brokers, which clients are still shown for a while.

A client that learns at once that a broker is gone and that its partitions have new leaders may drop
the partitions along with the broker, and look up their leaders only later: librdkafka does, and
stalls for a second. Worse, it never looks up the coordinator of a group on such a broker again
until any of its connections opens or closes: a transaction with offsets stalls. Kafka lists a dead
broker for 9 s, because it notices only then; for clients, a node that restarts in that time was
never gone.
"""

from typing import Final

from ottla.controller.image import MetadataImage
from ottla.controller.records import FENCE, BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.runtime.clock import Clock

LISTED_MS: Final = 10_000.0


class FencedBrokers:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: set[int] = set()  # A broker that registers for the first time is listed later.
        self._fenced_at_ms: dict[int, float] = {}

    def load(self, image: MetadataImage) -> None:
        """When they were fenced is unknown: perhaps just now, as when all nodes restart."""
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
