"""When records were written, as far as is known without reading them."""

from typing import Final

from ottla.protocol.errors import ApiError
from ottla.records.batch import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    TimestampType,
    read_header,
)
from ottla.replication.partition import Partition
from ottla.storage.errors import CorruptLog, StorageError

_UNREADABLE: Final = (ApiError, CorruptLog, StorageError, OSError)


def first_unread_ms(partition: Partition, offset: int) -> int:
    """The time of the first committed record from `offset` on, or NO_TIMESTAMP.

    May wait for the disk. It is the time of the batch's first record, which is at most a linger
    older, or the append time if the topic uses that. Only the batch header is read.
    """
    log = partition.log
    try:
        found = log.read(max(offset, log.log_start_offset), 1, log.high_watermark)
        if found is None:
            return NO_TIMESTAMP
        header = read_header(found.file.read(found.position, HEADER_SIZE))
    except _UNREADABLE:
        return NO_TIMESTAMP
    is_appended = header.timestamp_type is TimestampType.APPEND
    return header.max_timestamp if is_appended else header.base_timestamp
