"""What is known about a log's batches: their leader epochs and the state of their producers.

It follows every append and every truncation, so it never describes a batch that is not there.
Changes happen under the log's lock.
"""

from collections.abc import Sequence

from ottla.protocol.lazy_dataclass import dataclass
from ottla.records.batch import BatchHeader
from ottla.records.decoder import Marker
from ottla.storage.found_batches import note_aborted, replay_producers
from ottla.storage.leader_epochs import LeaderEpochCache
from ottla.storage.producer_state import ProducerStateManager
from ottla.storage.segment import Segment


@dataclass(slots=True, eq=False)
class LogHistory:
    leader_epochs: LeaderEpochCache
    producers: ProducerStateManager

    def on_control(
        self,
        header: BatchHeader,
        marker: Marker | None,
        leader_epoch: int,
        offset: int,
        segment: Segment,
    ) -> None:
        """A control batch of this leader was appended to the segment."""
        self._assign_epoch(leader_epoch, offset)
        if marker is not None:
            note_aborted(segment, self.producers.update_marker(header, marker, offset))

    def on_fetched(
        self, records: memoryview, batches: Sequence[tuple[int, BatchHeader]], segment: Segment
    ) -> None:
        """Batches of another leader, with their positions, were appended to the segment."""
        for position, header in batches:
            self._assign_epoch(header.partition_leader_epoch, header.base_offset)
            note_aborted(segment, self.producers.replay(records, position, header))

    def on_roll(self, offset: int) -> None:
        self.producers.take_snapshot(offset)

    def on_end_moved(
        self, segments: Sequence[Segment], log_start_offset: int, end_offset: int
    ) -> None:
        """The log was truncated to `end_offset`."""
        self.leader_epochs.truncate_from_end(end_offset)
        # At time 0 no producer has expired.
        start = self.producers.truncate_and_reload(log_start_offset, end_offset, now_ms=0)
        replay_producers(self.producers, segments, start, end_offset)

    def on_start_moved(self, offset: int) -> None:
        self.leader_epochs.truncate_from_start(offset)
        self.producers.forget_replicated(offset)

    def start_anew(self, offset: int) -> None:
        """The log was emptied."""
        self.leader_epochs.clear()
        # What a crash restores would be the history of another log.
        self.leader_epochs.flush(offset)
        self.producers.truncate_fully()

    def _assign_epoch(self, leader_epoch: int, offset: int) -> None:
        if leader_epoch > self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, offset)
