"""The delivery of a record to a share group: its states, and what a consumer can report.

    Available     acquire                                            -> Acquired
                  its record has a delivery time                     -> Parked
                  delivered as often as allowed, dead letter wanted  -> Archiving
                  delivered as often as allowed                      -> Archived
                  not in the log (compaction, control records)       -> Archived
    Acquired      accept                                             -> Acknowledged
                  release, lock timeout, the member is gone          -> Available
                    at the delivery count limit, dead letter wanted  -> Archiving
                    at the delivery count limit                      -> Archived
                  reject, dead letter wanted                         -> Archiving
                  reject                                             -> Archived
                  gap (the consumer found no record there)           -> Archived
                  renew                                              -> Acquired
                  release with a delay, or it is held                -> Parked
    Archiving     the dead letter is written (KIP-1191)              -> Archived
    Acknowledged  final
    Archived      final
    Parked        final in the window: `parking_lot` has it from then on

Acquired is never persisted: an acquired record is written as Available with its current delivery
count, so that a new leader delivers it again and still counts correctly. Parked is written as
Archived, in addition to the record's delivery time.
"""

import enum
from typing import Final, NamedTuple

DELIVERY_COUNT_MAX: Final = 32_767  # As sent and written; later deliveries do not increase it.


class DeliveryState(enum.IntEnum):
    """The values are those in the records of `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4
    PARKED = 100  # Not one of Kafka's, and never written.

    @property
    def is_final(self) -> bool:
        return self in _FINAL

    @property
    def is_unfinished(self) -> bool:
        return self in _UNFINISHED

    @property
    def written(self) -> "DeliveryState":
        return _WRITTEN.get(self, self)


_FINAL: Final = frozenset(
    {DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED, DeliveryState.PARKED}
)
_UNFINISHED: Final = frozenset({DeliveryState.AVAILABLE, DeliveryState.ACQUIRED})
_WRITTEN: Final = {
    DeliveryState.ACQUIRED: DeliveryState.AVAILABLE,
    DeliveryState.PARKED: DeliveryState.ARCHIVED,
}


class AcknowledgeType(enum.IntEnum):
    """The values are those in ShareFetch and ShareAcknowledge."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class StateBatch(NamedTuple):
    """Consecutive offsets in the same state, as persisted."""

    first_offset: int
    last_offset: int
    state: DeliveryState
    delivery_count: int


class Acknowledgement(NamedTuple):
    """What a consumer reports about consecutive offsets: one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: tuple[int, ...]


class DeadLetterReason(enum.Enum):
    DELIVERY_COUNT = "the delivery count limit was reached"
    REJECTED = "a consumer rejected it"


class DeadLetter(NamedTuple):
    """Consecutive records whose delivery has failed for good."""

    first_offset: int
    last_offset: int
    delivery_count: int
    reason: DeadLetterReason

    @property
    def records_count(self) -> int:
        return self.last_offset - self.first_offset + 1
