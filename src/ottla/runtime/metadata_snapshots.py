"""Decides when a node takes a metadata snapshot, and what happens to the log before it.

One is due when as many records as it would hold, or many bytes, have followed the last one, so that
a start reads at most about twice the state. It covers what is committed and synced here.
"""

import logging
from asyncio import Future
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from ottla.machine.contract import RecordCodec
from ottla.protocol.lazy_dataclass import dataclass
from ottla.raft.log import OffsetAndEpoch
from ottla.raft.voters import VoterSet
from ottla.runtime.metadata_applier import Applied, MetadataApplier
from ottla.runtime.process import Process
from ottla.runtime.raft_driver import RaftDriver
from ottla.runtime.raft_log import RaftLog

logger = logging.getLogger(__name__)

RECORDS_MIN: Final = 10_000


@dataclass(slots=True, kw_only=True, eq=False)
class MetadataSnapshots:
    """Belongs to the loop's thread."""

    driver: RaftDriver
    applier: MetadataApplier
    codec: RecordCodec
    process: Process
    bytes_max: int
    is_writing: bool = field(init=False, default=False)
    _snapshot_records: int = field(init=False, default=0)  # In the newest snapshot.
    _records_count: int = field(init=False, default=0)  # Since that snapshot.
    _bytes_count: int = field(init=False, default=0)

    def on_applied(self, applied: Applied) -> None:
        if not applied.size:  # A snapshot was loaded.
            self._snapshot_records = applied.records_count
            self._records_count = self._bytes_count = 0
            return
        self._records_count += applied.records_count
        self._bytes_count += applied.size
        if not self.is_writing and self._is_due() and self._is_safe():
            self._take()

    def _is_due(self) -> bool:
        records_max = max(RECORDS_MIN, self._snapshot_records)
        return self._records_count >= records_max or self._bytes_count >= self.bytes_max

    def _is_safe(self) -> bool:
        core, offset = self.driver.core, self.applier.applied_offset
        return (
            core is not None
            and offset == core.high_watermark  # The voter set is known for this offset.
            and offset <= self.driver.log.flushed_offset
        )

    def _take(self) -> None:
        core, log, offset = self.driver.core, self.driver.log, self.applier.applied_offset
        assert core is not None
        snapshot_id = OffsetAndEpoch(offset, log.epoch_of(offset - 1))
        records = list(self.applier.feed.image.snapshot())
        self.is_writing = True
        self._records_count = self._bytes_count = 0
        writing = self.process.in_thread(
            self._write, log, snapshot_id, core.voters.at(offset), records
        )
        writing.add_done_callback(lambda done: self._on_written(snapshot_id, len(records), done))

    def _write(
        self,
        log: RaftLog,
        snapshot_id: OffsetAndEpoch,
        voters: VoterSet,
        records: Sequence[object],
    ) -> int:
        size = log.snapshots.write(
            snapshot_id, voters, records, self.codec, self.process.clock.now_ms()
        )
        log.roll()
        log.sync_recovery_point()
        return size

    def _on_written(
        self, snapshot_id: OffsetAndEpoch, records_count: int, writing: "Future[int]"
    ) -> None:
        self.is_writing = False
        if writing.cancelled():
            return
        error = writing.exception()
        if error is not None:
            # The log is complete without it; the next attempt follows when as much has been added.
            logger.error("could not write a snapshot of the metadata: %s", error)
            return
        self._snapshot_records = records_count
        log = self.driver.log
        if log.start_offset <= snapshot_id.offset:  # Unless one from the leader has overtaken it.
            log.on_snapshot_written(snapshot_id, writing.result())
            self.process.in_thread(log.remove_passed)
