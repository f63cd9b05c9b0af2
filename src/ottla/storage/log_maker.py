"""Makes the directories of new logs."""

from collections.abc import Callable

from ottla.protocol.lazy_dataclass import dataclass
from ottla.protocol.topics import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.recovery import LoadRequest


@dataclass(slots=True, eq=False)
class LogMaker:
    _clock_ms: Callable[[], int]
    producer_expiration_ms: int

    def make(
        self,
        log_directory: LogDirectory,
        name: str,
        topic_partition: TopicPartition,
        config: LogConfig,
    ) -> PartitionLog:
        """Create an empty log in a directory with this name; nothing is synced."""
        directory = f"{log_directory.path}/{name}"
        request = LoadRequest(
            directory,
            topic_partition,
            config,
            self._clock_ms(),
            clean_shutdown=True,
            producer_expiration_ms=self.producer_expiration_ms,
        )
        try:
            log_directory.filesystem.make_directory(directory, sync=False)
            log_directory.on_partitions_changed()
            return open_partition_log(log_directory, request)
        except OSError as error:
            raise log_directory.on_error(error) from error
