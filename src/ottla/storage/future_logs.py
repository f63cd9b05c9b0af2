"""Replicas that move to another log directory of this broker (KIP-113).

    begun     the directory `<topic>-<partition>.<id>-future` exists, synced, with its topic id
    copying   it copies what the log has
    promoted  it has everything, takes the partition's name, and receives appends
    retired   it is synced, and the old directory is renamed for deletion

The old directory is deleted only once everything in the new one is on disk. A crash before that
leaves two with the same name, of which `take_up` keeps the one that has more. A crash while copying
leaves both, and the move resumes. If only the new one is left, it becomes the log.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.storage.errors import StorageError
from ottla.storage.log import PartitionLog
from ottla.storage.log_directories import LogDirectories
from ottla.storage.log_directory import LogDirectory
from ottla.storage.log_maker import LogMaker
from ottla.storage.log_move import LogMove, align
from ottla.storage.partition_names import name_for_deletion, name_for_future, name_for_stray

logger = logging.getLogger(__name__)

WISHES_MAX = 10_000


class FutureLogs:
    def __init__(
        self, log_dirs: LogDirectories, new_id: Callable[[], UUID], maker: LogMaker
    ) -> None:
        self.all: dict[TopicPartition, PartitionLog] = {}
        self._wishes: dict[TopicPartition, LogDirectory] = {}  # Of partitions not here.
        self._log_dirs = log_dirs
        self._new_id = new_id
        self._maker = maker

    def find_directory(self, path: str) -> LogDirectory:
        for log_directory in self._log_dirs:
            if log_directory.path == path.rstrip("/"):
                if log_directory.failure is not None:
                    raise ApiError(ErrorCode.kafka_storage_error, f"{path} is offline")
                if log_directory.is_cordoned:
                    raise ApiError(ErrorCode.invalid_replica_assignment, f"{path} is cordoned")
                return log_directory
        raise ApiError(ErrorCode.log_dir_not_found, f"{path} is not one of log.dirs")

    def validate_name(self, topic_partition: TopicPartition) -> None:
        if name_for_future(topic_partition, self._new_id()) is None:
            raise ApiError(ErrorCode.invalid_topic_exception, "The topic name is too long.")

    def wish(self, topic_partition: TopicPartition, log_directory: LogDirectory) -> None:
        """Choose the directory for the partition in case it is placed on this broker."""
        if len(self._wishes) < WISHES_MAX:
            self._wishes[topic_partition] = log_directory

    def take_wish(self, topic_partition: TopicPartition) -> LogDirectory | None:
        log_directory = self._wishes.pop(topic_partition, None)
        return None if log_directory is None or log_directory.failure else log_directory

    def create(self, log: PartitionLog, log_directory: LogDirectory) -> PartitionLog:
        """Create an empty log that will receive everything this one has."""
        if len(self._log_dirs.online()) < len(self._log_dirs):
            raise ApiError(
                ErrorCode.kafka_storage_error, "a log directory is offline, and may have a copy"
            )
        name = name_for_future(log.topic_partition, self._new_id())
        assert name is not None, "validated before"
        future = self._maker.make(log_directory, name, log.topic_partition, log.config)
        assert log.topic_id is not None
        future.identify(log.topic_id)
        future.truncate_fully_and_start_at(log.log_start_offset)
        self.all[log.topic_partition] = future
        return future

    def moves(self, logs: Mapping[TopicPartition, PartitionLog]) -> list[LogMove]:
        """The moves in progress from these logs."""
        return [
            LogMove(logs[topic_partition], future)
            for topic_partition, future in list(self.all.items())
            if topic_partition in logs
        ]

    def discard(self, topic_partition: TopicPartition) -> None:
        """Cancel the move."""
        future = self.all.pop(topic_partition, None)
        if future is not None and future.log_directory.failure is None:
            self._delete(future)

    def take_up(
        self, futures: Iterable[PartitionLog], logs: dict[TopicPartition, PartitionLog]
    ) -> list[PartitionLog]:
        """At startup: unfinished moves stay in `all`; returns the futures that became logs."""
        promoted = []
        for future in futures:
            topic_partition = future.topic_partition
            log = logs.get(topic_partition)
            if future.damage or topic_partition in self.all or future.topic_id is None:
                self._delete(future)
            elif log is not None and log.topic_id == future.topic_id:
                align(log, future)
                self.all[topic_partition] = future
            elif log is None and len(self._log_dirs.online()) == len(self._log_dirs):
                logger.warning("%s is the only copy of %s", future.directory, topic_partition)
                future.rename(f"{future.log_directory.path}/{topic_partition}")
                promoted.append(future)
        return promoted

    def set_duplicate_aside(self, log: PartitionLog, kept: PartitionLog) -> None:
        """After a crash ended a move before the old directory was renamed, or a disk came back."""
        path = f"{log.log_directory.path}/{name_for_stray(log.topic_partition, self._new_id())}"
        logger.warning(
            "%s is set aside as %s: %s has more, up to offset %d of epoch %d",
            log.directory,
            path,
            kept.directory,
            kept.log_end_offset,
            kept.leader_epochs.latest_epoch,
        )
        log.rename_for_deletion(path)

    def _delete(self, future: PartitionLog) -> None:
        log_directory = future.log_directory
        path = f"{log_directory.path}/{name_for_deletion(future.topic_partition, self._new_id())}"
        try:
            future.rename_for_deletion(path)
            log_directory.discard([path], 0)
        except (StorageError, ApiError) as error:
            logger.warning("%s is not removed: %s", future.directory, error)


def has_more(log: PartitionLog, other: PartitionLog) -> bool:
    """Whether this replica has data that the other lacks, by leader epoch and end offset."""
    ours = (log.leader_epochs.latest_epoch, log.log_end_offset)
    return ours > (other.leader_epochs.latest_epoch, other.log_end_offset)
