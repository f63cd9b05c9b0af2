"""The first batch of a log that starts within a batch.

DeleteRecords can move a log's start to any offset, but batches are stored and copied whole. A copy
that begins at such an offset is sent a batch that begins before its end, so it begins at that batch
and hides what precedes the start.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import HEADER_SIZE, read_header
from ottla.records.errors import RecordError
from ottla.storage.log import PartitionLog

if TYPE_CHECKING:
    from ottla.storage.manager import LogManager


def starts_within(log: PartitionLog, records: memoryview) -> bool:
    """Whether the log is empty and starts within the first of these batches."""
    end_offset = log.log_end_offset
    if log.log_start_offset != end_offset or len(records) < HEADER_SIZE:
        return False
    header = read_header(records)
    return header.base_offset < end_offset < header.next_offset


def append_around_start(log: PartitionLog, records: memoryview, start_offset: int) -> None:
    """Append to a log that was emptied at their base offset; it then starts at `start_offset`."""
    log.append_as_follower(records)
    log.delete_records_before(start_offset)


def begin_at_first_batches(
    logs: "LogManager",
    records: Mapping[TopicPartition, bytes],
    base_offsets: Mapping[TopicPartition, int],
) -> None:
    """Append to empty logs and sync them. A log deleted meanwhile is skipped."""
    starts = {
        each: log.log_start_offset for each in base_offsets if (log := logs.get(each)) is not None
    }
    logs.start_anew({each: base_offsets[each] for each in starts})
    for topic_partition, start_offset in starts.items():
        log = logs.get(topic_partition)
        if log is None:
            continue
        log.log_directory.check_room()
        try:
            append_around_start(log, memoryview(records[topic_partition]), start_offset)
        except RecordError as error:
            raise ApiError(ErrorCode.corrupt_message, f"{topic_partition}: {error}") from error
        log.flush()
