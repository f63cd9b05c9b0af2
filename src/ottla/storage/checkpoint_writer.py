"""Writes the recovery points, high watermarks and log start offsets of each log directory.

After a crash everything past a recovery point is checked, so the point never runs ahead of what is
synced, nor of a truncation: a truncation takes the guard and writes the lower point first.
"""

import threading
from collections.abc import Callable, Mapping, Sequence

from ottla.protocol.topics import TopicPartition
from ottla.storage.checkpoints import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    write_offsets,
)
from ottla.storage.filesystem import Filesystem
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory


class CheckpointWriter:
    def __init__(
        self,
        filesystem: Filesystem,
        logs_in: Callable[[LogDirectory], Sequence[PartitionLog]],
        flush_epochs: Callable[[PartitionLog], bool],
    ) -> None:
        """`flush_epochs` returns whether it succeeded."""
        self.guard = threading.Lock()
        self._filesystem = filesystem
        self._logs_in = logs_in
        self._flush_epochs = flush_epochs

    def write(self, log_directory: LogDirectory) -> None:
        logs = self._logs_in(log_directory)
        log_starts = {
            log.topic_partition: log.log_start_offset
            for log in logs
            if log.log_start_offset > log.segments[0].base_offset
        }
        high_watermarks = {log.topic_partition: log.high_watermark for log in logs}
        with self.guard:
            self.write_recovery_points(log_directory, {})
            self._write(log_directory, LOG_START_CHECKPOINT, log_starts)
            self._write(log_directory, REPLICATION_CHECKPOINT, high_watermarks)

    def write_recovery_points(
        self, log_directory: LogDirectory, limits: Mapping[TopicPartition, int]
    ) -> None:
        """Call with the guard held."""
        logs = self._logs_in(log_directory)
        points = {
            log.topic_partition: min(
                log.flushed_offset, limits.get(log.topic_partition, log.flushed_offset)
            )
            for log in logs
        }
        for log in logs:
            if not self._flush_epochs(log):
                points[log.topic_partition] = log.log_start_offset
        self._write(log_directory, RECOVERY_POINT_CHECKPOINT, points)

    def _write(
        self, log_directory: LogDirectory, name: str, offsets: Mapping[TopicPartition, int]
    ) -> None:
        write_offsets(self._filesystem, f"{log_directory.path}/{name}", offsets)
