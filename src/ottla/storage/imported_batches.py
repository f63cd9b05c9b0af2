"""Batches imported from outside the cluster, with their offsets.

They get this leader's epoch, which their checksums do not cover; everything else stays. So the
epoch history is true for this cluster, and replicas find where their logs diverge as they do after
any other write by the leader.
"""

from typing import Final

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.records.batch import assign, iterate_headers
from ottla.records.errors import CorruptBatch
from ottla.storage.appended import Appended
from ottla.storage.log import PartitionLog

_GAP_MAX: Final = 2**31 - 1  # Offsets in a segment are relative to its first one, in 31 bits.


def append_imported(
    log: PartitionLog, records: memoryview, next_offset: int, leader_epoch: int
) -> Appended:
    """Append whole batches to a log that ends at `next_offset`; modifies `records`.

    ApiError and CorruptBatch leave the log unchanged. No other append may run at the same time.
    """
    if not log.config.takes_imports:
        raise not_open(log)
    end_offset = log.log_end_offset
    if next_offset != end_offset:
        raise ApiError(
            ErrorCode.offset_out_of_range,
            f"{log.topic_partition} ends at {end_offset}, not at {next_offset}",
        )
    position = 0
    for start, header in iterate_headers(records):
        if header.last_offset_delta < 0 or header.last_offset - next_offset > _GAP_MAX:
            raise CorruptBatch(
                f"the batch at offset {header.base_offset} reaches to {header.last_offset},"
                f" after {next_offset}"
            )
        assign(records, start, header.base_offset, leader_epoch)
        next_offset = header.next_offset
        position = start + header.size
    if position != len(records):
        raise CorruptBatch(f"{len(records) - position} bytes after the last whole batch")
    return log.append_as_follower(records)


def not_open(log: PartitionLog) -> ApiError:
    """Others may have written to the log: imported records are never mixed with theirs."""
    return ApiError(
        ErrorCode.policy_violation,
        f"{log.topic_partition} takes no imported records; record.import of its topic is"
        f" {log.config.record_import}",
    )
