"""Delivery counters of a share group, as plain integers that the node exports."""

from collections.abc import Iterable

from ottla.groups.share.acquisition import AcquiredRange
from ottla.protocol.lazy_dataclass import dataclass


@dataclass(slots=True)
class ShareCounters:
    """Counts one share group's deliveries from the partitions led by this broker."""

    deliveries: int = 0
    redeliveries: int = 0  # Part of the deliveries.
    dead_letters: int = 0

    def on_acquired(self, ranges: Iterable[AcquiredRange]) -> None:
        for first_offset, last_offset, delivery_count in ranges:
            count = last_offset - first_offset + 1
            self.deliveries += count
            if delivery_count > 1:
                self.redeliveries += count
