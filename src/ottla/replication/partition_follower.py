"""The follower role of a partition: copies the leader's log and state.

The high watermark is the leader's, capped at the follower's log end. The role lasts for one leader
epoch.
"""

from typing import TYPE_CHECKING

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.storage.errors import StorageError

if TYPE_CHECKING:
    from ottla.replication.partition import Partition


class PartitionFollower:
    __slots__ = ("partition",)

    def __init__(self, partition: "Partition") -> None:
        self.partition = partition

    def append(self, records: memoryview) -> None:
        """Append the leader's records; the fetcher syncs them if required.

        CorruptBatch and ApiError leave the log unchanged.
        """
        partition = self.partition
        log = partition.log
        log.log_directory.check_room()
        try:
            log.append_as_follower(records)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
        partition.traffic.replication_bytes_in += len(records)
        if log.log_end_offset - log.flushed_offset >= log.config.flush_messages > 1:
            partition.request_flush()

    def advance_high_watermark(self, offset: int) -> None:
        """Advance to the leader's value, capped at the log end."""
        partition = self.partition
        log = partition.log
        offset = min(offset, log.log_end_offset)
        if offset > log.high_watermark:
            log.high_watermark = offset
            partition.wake_fetchers()

    def advance_log_start(self, offset: int) -> None:
        """Delete what the leader has deleted."""
        log = self.partition.log
        if offset > log.log_start_offset:
            try:
                log.delete_records_before(min(offset, log.log_end_offset))
            except StorageError as error:
                raise ApiError(ErrorCode.kafka_storage_error, str(error)) from error
