"""Decides which records of a batch compaction keeps.

A record stays if it is the last one of its key, or lies past the part of the log whose keys were
mapped. A tombstone also stays until `delete.retention.ms` after compaction first met it as the
last record of its key: that time, the delete horizon, is written into its batch (KIP-534).
Transaction markers wait in the same way once nothing of their transaction is left.

A batch that lost all its records stays as a bare header if it has the last sequence of a producer
that the log remembers. The last batch written also stays, as a header without a producer: it marks
how far the segment reaches.
"""

from collections.abc import Callable, Mapping

from ottla.protocol.lazy_dataclass import dataclass
from ottla.records.batch import BatchHeader, validate_checksum
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import Marker, iterate_records, parse_marker
from ottla.storage.cleaned_transactions import CleanedTransactions
from ottla.storage.offset_map import OffsetMap
from ottla.storage.producer_state import LastRecord
from ottla.storage.record_scan import ScannedRecord, body_of, copy_records, scan_records
from ottla.storage.transaction_index import AbortedTransaction


@dataclass(frozen=True, slots=True)
class BatchFilter:
    offsets: OffsetMap
    transactions: CleanedTransactions
    last_records: Mapping[int, LastRecord]  # By producer id.
    keep_aborted: Callable[[AbortedTransaction], None]
    now_ms: int
    delete_retention_ms: int

    def apply(
        self, batch: memoryview, header: BatchHeader, *, last: bool
    ) -> memoryview | bytearray | None:
        """Return the batch unchanged, a copy with fewer records, or None to drop it.

        Raises CorruptBatch rather than give damaged records a new, valid checksum.
        """
        validate_checksum(batch, 0, header)
        if header.is_control:
            return self._apply_to_control(batch, header, last)
        if self.transactions.on_batch(header):
            return self._emptied(header, last)
        if header.base_offset > self.offsets.latest_offset:
            return batch
        body = body_of(batch, header)
        kept = [record for record in scan_records(body, header) if self._keeps(record, header)]
        if not kept:
            return self._emptied(header, last)
        if header.delete_horizon_ms is None and self._has_tombstone(kept):
            offsets = {record.offset for record in kept}
            records = [record for record in iterate_records(batch) if record.offset in offsets]
            return self._with_horizon(header, records)
        return batch if len(kept) == header.records_count else copy_records(header, body, kept)

    def _apply_to_control(
        self, batch: memoryview, header: BatchHeader, last: bool
    ) -> memoryview | bytearray | None:
        records = list(iterate_records(batch))
        can_go = self.transactions.on_marker(header, _marker_of(records), self.keep_aborted)
        horizon = header.delete_horizon_ms
        if can_go and (not records or (horizon is not None and horizon <= self.now_ms)):
            return self._emptied(header, last)
        if can_go and horizon is None:
            return self._with_horizon(header, records)
        return batch

    def _keeps(self, record: ScannedRecord, header: BatchHeader) -> bool:
        if record.offset > self.offsets.latest_offset:
            return True
        if record.key is None or record.offset < self.offsets.get(record.key):
            return False
        horizon = header.delete_horizon_ms
        return record.has_value or horizon is None or self.now_ms < horizon

    def _has_tombstone(self, records: list[ScannedRecord]) -> bool:
        latest_offset = self.offsets.latest_offset
        return any(not record.has_value and record.offset <= latest_offset for record in records)

    def _emptied(self, header: BatchHeader, last: bool) -> bytearray | None:
        if self._is_last_of_producer(header):
            return build_batch(
                [],
                base_offset=header.base_offset,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=header.base_sequence,
                leader_epoch=header.partition_leader_epoch,
                transactional=header.is_transactional,
                control=header.is_control,
                timestamp_type=header.timestamp_type,
                max_timestamp=header.max_timestamp,
                last_offset_delta=header.last_offset_delta,
            )
        if not last:
            return None
        return build_batch(
            [],
            base_offset=header.base_offset,
            leader_epoch=header.partition_leader_epoch,
            timestamp_type=header.timestamp_type,
            max_timestamp=header.max_timestamp,
            last_offset_delta=header.last_offset_delta,
        )

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        """A marker counts only if the producer's epoch has no data: then it alone has the epoch."""
        last = self.last_records.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.producer_epoch

    def _with_horizon(self, header: BatchHeader, records: list[Record]) -> bytearray:
        """Every record is re-encoded, because the base timestamp is replaced."""
        return build_batch(
            records,
            base_offset=header.base_offset,
            compression=header.compression,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            leader_epoch=header.partition_leader_epoch,
            transactional=header.is_transactional,
            control=header.is_control,
            timestamp_type=header.timestamp_type,
            last_offset_delta=header.last_offset_delta,
            delete_horizon_ms=self.now_ms + self.delete_retention_ms,
        )


def _marker_of(records: list[Record]) -> Marker | None:
    return parse_marker(records[0]) if records else None
