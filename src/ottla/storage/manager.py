"""All partition logs of a broker, in one or several log directories.

The event loop creates, finds and deletes logs. Threads run what waits for the disk: `start`,
`flush`, `retain`, `clean`, `checkpoint`, `truncate` and `stop`; they may run beside each other and
beside the event loop.

A directory whose disk fails goes offline with its logs; the others go on.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from uuid import UUID, uuid4

from ottla.protocol.config import ConfigValues
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.storage.broker_config import (
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_CLEANER_IO_BUFFER_SIZE,
    LOG_CLEANER_IO_MAX_BYTES_PER_SECOND,
    LOG_OPEN_FILES_MAX,
    LOG_SCRUB_BYTES_PER_SECOND,
    LOG_SCRUB_INTERVAL_MS,
    NUM_RECOVERY_THREADS_PER_DATA_DIR,
    PRODUCER_ID_EXPIRATION_MS,
)
from ottla.storage.checkpoints import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    write_offsets,
)
from ottla.storage.cleaner import LogCleaner
from ottla.storage.config import LogConfig
from ottla.storage.corrupt_logs import CorruptLogs
from ottla.storage.counters import StorageCounters
from ottla.storage.directory_info import DirectoryInfo
from ottla.storage.directory_loader import DirectoryLoader, log_starts
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.log import PartitionLog
from ottla.storage.log_directories import LogDirectories
from ottla.storage.log_directory import LogDirectory
from ottla.storage.partition_names import name_for_deletion, name_for_stray
from ottla.storage.removals import Removals
from ottla.storage.scrubber import DirectoryScrubber
from ottla.storage.throttle import Throttle

_logger = logging.getLogger(__name__)

SCRUBS_PER_SECOND = 4  # In short turns, for a thread that computes holds up the event loop.
_CLOSING_THREADS_MIN = 8  # They wait for syncs, which the disk does together.


def _default_config(_topic: str) -> LogConfig:
    return LogConfig()


class LogManager:
    def __init__(
        self,
        directories: Sequence[str],
        filesystem: Filesystem,
        clock_ms: Callable[[], int],
        *,
        broker: ConfigValues | None = None,
        config_of_topic: Callable[[str], LogConfig] = _default_config,
        on_failure: Callable[[StorageError], object] | None = None,
        on_full: Callable[[], object] | None = None,
        new_id: Callable[[], UUID] = uuid4,
        new_threads: Callable[[int, str], Executor] = ThreadPoolExecutor,
    ) -> None:
        """In any thread, `on_failure` hears of directories that go offline.

        And `on_full` that one is full, or has room again.
        """
        values = broker or ConfigValues()
        self.log_dirs = LogDirectories(
            directories,
            filesystem,
            open_files_max=values[LOG_OPEN_FILES_MAX],
            clock_ms=clock_ms,
            new_id=new_id,
            on_failure=on_failure,
            on_full=on_full,
        )
        self.counters = StorageCounters()
        self._filesystem = filesystem
        self._clock_ms = clock_ms
        self._config_of_topic = config_of_topic
        self._new_id = new_id
        self._new_threads = new_threads
        self._threads_count = values[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        self._producer_expiration_ms = values[PRODUCER_ID_EXPIRATION_MS]
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._counts = dict.fromkeys(self.log_dirs, 0)  # Logs in each directory.
        self._damaged: dict[PartitionLog, None] = {}  # Those that have damage, or had.
        self._corrupt = CorruptLogs(filesystem, new_id)
        self._strangers: dict[TopicPartition, PartitionLog] = {}  # Without a known topic id.
        self._removals = Removals(self.log_dirs, filesystem, clock_ms)
        self._checkpoint_guard = (
            threading.Lock()
        )  # Recovery points never run ahead of a truncation.
        self._stopping = threading.Event()
        self._cleaner = self._make_cleaner(values)
        self._scrub_bytes = values[LOG_SCRUB_BYTES_PER_SECOND]
        self._scrubbers = {
            home: DirectoryScrubber(home, clock_ms, values[LOG_SCRUB_INTERVAL_MS], self._on_damage)
            for home in self.log_dirs
        }

    def start(self, node_id: int, cluster_id: str | None = None) -> None:
        """Lock the directories, check that they are this node's, and load their logs.

        Without a cluster id it is that of the directories, or a new one. WrongDirectory stops the
        start; a directory whose disk fails is left out, unless it is the last one.
        """
        try:
            self.log_dirs.lock()
            self.log_dirs.identify(node_id, cluster_id)
            self._load_all()
        except BaseException:
            self.log_dirs.release()
            raise

    def _load_all(self) -> None:
        homes = self.log_dirs
        with self._new_threads(len(homes), "load-directories") as threads:
            list(threads.map(lambda home: homes.take_up(home, self._load), homes))
        failures = [home.failure for home in homes if home.failure is not None]
        if len(failures) == len(homes):
            raise failures[0]

    def get(
        self, topic_partition: TopicPartition, topic_id: UUID | None = None
    ) -> PartitionLog | None:
        """None also when the log that is here is not of the topic with this id."""
        log = self._logs.get(topic_partition)
        if log is None or (topic_id is not None and log.topic_id != topic_id):
            return None
        return log

    def logs(self) -> Iterator[PartitionLog]:
        """Those of the directories that are online."""
        return (log for log in list(self._logs.values()) if log.home.failure is None)

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, config: LogConfig
    ) -> PartitionLog:
        """Make the log of a partition, in the directory with the fewest.

        A log of another topic of that name is set aside. Nothing is synced: the first flush does
        that for all partitions that were made before.
        """
        corrupt = self._corrupt.find(topic_partition, topic_id)
        if corrupt is not None:
            raise ApiError(ErrorCode.kafka_storage_error, str(corrupt))
        existing = self._logs.get(topic_partition)
        if existing is not None:
            if existing.topic_id == topic_id:
                existing.home.check_online()
                existing.configure(config)
                return existing
            self.set_aside(topic_partition)
        log = self._strangers.pop(topic_partition, None)
        if log is None:
            log = self._make(topic_partition, config)
        log.configure(config)
        log.identify(topic_id)
        self._add(log)
        return log

    def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log out of use at once; its files go after file.delete.delay.ms."""
        corrupt = self._corrupt.take_deletable(topic_partition)
        if corrupt is not None:
            self._delete_corrupt(topic_partition, corrupt)
        log = self._logs.get(topic_partition)
        if log is None:
            return
        if log.home.failure is None:
            path = self._path_for_deletion(log.home, topic_partition)
            self._rename(log, path)
            log.home.discard([path], log.config.file_delete_delay_ms)
        self._forget(log)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Take a log out of use whose topic the cluster does not have.

        Perhaps the metadata is what is wrong, so nothing is removed: the directory gets a name that
        ends in `-stray`, and is a person's to remove or to rename.
        """
        log = self._logs[topic_partition]
        if log.home.failure is None:
            before = log.directory
            path = f"{log.home.path}/{name_for_stray(topic_partition, self._new_id())}"
            if self._rename(log, path):
                _logger.warning(
                    "the cluster has no topic with the id %s of %s; the directory is set aside as "
                    "%s and is removed by nobody but you",
                    log.topic_id,
                    before,
                    path,
                )
        self._forget(log)

    def _rename(self, log: PartitionLog, path: str) -> bool:
        self._cleaner.on_deleted(log.directory, log.topic_partition)
        return self._guarded(log, lambda log: log.rename_for_deletion(path))

    def _forget(self, log: PartitionLog) -> None:
        del self._logs[log.topic_partition]
        self._damaged.pop(log, None)
        self._counts[log.home] -= 1

    def set_corrupt_aside(self, topic_partition: TopicPartition) -> None:
        """Make room for a new copy of a log that is not served, from the leader or a backup."""
        self._corrupt.set_aside(topic_partition)

    @property
    def damaged(self) -> list[PartitionLog]:
        """The logs of which parts cannot be served."""
        return [
            log
            for log in list(self._damaged)
            if log.damage and self._logs.get(log.topic_partition) is log
        ]

    @property
    def corrupt(self) -> Mapping[TopicPartition, CorruptLog]:
        """The logs that are not served because their bytes are damaged."""
        return self._corrupt.all

    @property
    def uncleanable_count(self) -> int:
        """Logs that are not compacted, because they are damaged."""
        return self._cleaner.uncleanable_count

    def flush(self) -> None:
        """Sync every log that has something to sync."""
        for log in self.logs():
            if log.flushed_offset < log.log_end_offset:
                self._guarded(log, PartitionLog.flush)

    def retain(self) -> None:
        """Take out of the logs what is expired: segments and producers."""
        now_ms = self._clock_ms()
        for log in self.logs():
            self._guarded(log, lambda log: self.counters.delete_expired(log, now_ms))
            self._guarded(log, lambda log: log.expire_producers(now_ms))

    def clean(self) -> bool:
        """Compact the logs that are due, the one that needs it most first; False if none was."""
        count = 0
        try:
            while count < len(self._logs) and not self._stopping.is_set():
                cleaned = self._cleaner.clean_filthiest(self.logs())
                if cleaned is None:
                    break
                self.counters.on_cleaned(cleaned)
                count += 1
        except (StorageError, ApiError) as error:
            _logger.warning("compaction stopped: %s", error)
        return count > 0

    def scrub(self) -> None:
        """SCRUBS_PER_SECOND times: check a little of each directory, and what looked damaged."""
        for home, scrubber in self._scrubbers.items():
            if home.failure is None and not self._stopping.is_set():
                self.log_dirs.attempt(home, partial(self._scrub, scrubber))

    def _scrub(self, scrubber: DirectoryScrubber, _home: LogDirectory) -> None:
        scrubber.step(dict(self._logs), self._scrub_bytes // SCRUBS_PER_SECOND)

    def remove_discarded(self) -> None:
        """Remove the files of deleted logs and segments whose delay is over."""
        for home, path in self._removals.take_due():
            if home.failure is None:
                self.log_dirs.attempt(home, partial(self._remove, path))

    def checkpoint(self) -> None:
        """Write down how far each log is synced and committed, and where it starts."""
        for log in self.logs():
            if log.has_rolled:
                self._guarded(log, PartitionLog.flush)
        for home in self.log_dirs:
            home.report_shortages_again()
            if home.failure is None:
                self.log_dirs.attempt(home, self._write_checkpoints)

    def truncate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Truncate logs; their recovery points are written down first, once for all of them.

        A log that was deleted meanwhile is left out.
        """
        self._truncate(offsets, PartitionLog.end_before, PartitionLog.truncate_to)

    def start_anew(self, offsets: Mapping[TopicPartition, int]) -> None:
        """As `truncate`: remove everything from logs, which then begin at these offsets."""
        self._truncate(offsets, lambda _, offset: offset, PartitionLog.truncate_fully_and_start_at)

    def _truncate(
        self,
        offsets: Mapping[TopicPartition, int],
        end_before: Callable[[PartitionLog, int], int],
        truncate: Callable[[PartitionLog, int], None],
    ) -> None:
        logs = [log for place in offsets if (log := self._logs.get(place)) is not None]
        with self._checkpoint_guard:
            ends = {
                log.topic_partition: end_before(log, offsets[log.topic_partition]) for log in logs
            }
            for home in dict.fromkeys(log.home for log in logs):
                self.log_dirs.attempt(home, lambda home: self._write_recovery_points(home, ends))
            for log in logs:
                offset = offsets[log.topic_partition]
                truncate(log, offset)
                self._cleaner.on_truncated(log, offset)

    def directories(self) -> list[DirectoryInfo]:
        logs = list(self._logs.values())
        return [DirectoryInfo.of(home, logs) for home in self.log_dirs]

    def stop(self) -> None:
        """Close every log; the next start finds a clean shutdown where all went well."""
        self._stopping.set()
        count = max(self._threads_count, _CLOSING_THREADS_MIN) * len(self.log_dirs)
        with self._new_threads(count, "close-logs") as threads:
            failed = set(filter(None, threads.map(self._close, self.logs())))
        for home in self.log_dirs:
            if home.failure is None:
                self.log_dirs.attempt(home, self._write_checkpoints)
            if home.failure is None and home not in failed:
                self.log_dirs.attempt(home, self.log_dirs.write_clean_shutdown)
        self.log_dirs.release()

    def _make_cleaner(self, values: ConfigValues) -> LogCleaner:
        throttle = Throttle(
            values[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND], self._clock_ms, self._stopping.wait
        )
        return LogCleaner(
            self._filesystem,
            self._clock_ms,
            dedupe_buffer_size=values[LOG_CLEANER_DEDUPE_BUFFER_SIZE],
            io_buffer_size=values[LOG_CLEANER_IO_BUFFER_SIZE],
            on_work=throttle.done,
            should_stop=self._stopping.is_set,
        )

    def _load(self, home: LogDirectory) -> None:
        loader = DirectoryLoader(
            home, self._config_of_topic, self._clock_ms(), self._producer_expiration_ms
        )
        with self._new_threads(self._threads_count, "load-logs") as threads:
            logs, corrupt, broker_epoch = loader.load(threads)
        self.log_dirs.previous_epochs.add(broker_epoch)
        self._corrupt.add(corrupt)
        self._scrubbers[home].load()
        for log in logs:
            if log.topic_id is None:
                self._strangers[log.topic_partition] = log
            elif log.topic_partition in self._logs:
                other = self._logs[log.topic_partition].directory
                _logger.error("%s is not served: the same is in %s", log.directory, other)
            else:
                self._add(log)

    def _make(self, topic_partition: TopicPartition, config: LogConfig) -> PartitionLog:
        online = self.log_dirs.online()
        if not online:
            raise ApiError(ErrorCode.kafka_storage_error, "every log directory is offline")
        home = min(online, key=lambda home: (home.is_cordoned, self._counts[home]))
        directory = f"{home.path}/{topic_partition}"
        try:
            self._filesystem.make_directory(directory, sync=False)
            home.on_partitions_changed()
            return PartitionLog.open(
                directory,
                topic_partition,
                None,
                config,
                self._filesystem,
                self._clock_ms(),
                clean_shutdown=True,
                producer_expiration_ms=self._producer_expiration_ms,
                home=home,
            )
        except OSError as error:
            raise home.fail(error) from error

    def _delete_corrupt(self, topic_partition: TopicPartition, corrupt: CorruptLog) -> None:
        directory = parent_of(corrupt.path)
        home = next(home for home in self.log_dirs if home.path == parent_of(directory))
        path = self._path_for_deletion(home, topic_partition)
        self.log_dirs.attempt(home, lambda _: self._filesystem.rename(directory, path))
        home.discard([path], 0)

    def _path_for_deletion(self, home: LogDirectory, topic_partition: TopicPartition) -> str:
        return f"{home.path}/{name_for_deletion(topic_partition, self._new_id())}"

    def _on_damage(self, log: PartitionLog) -> None:
        """In any thread."""
        self._damaged[log] = None

    def _add(self, log: PartitionLog) -> None:
        if log.damage:
            self._on_damage(log)
        self._logs[log.topic_partition] = log
        self._counts[log.home] += 1

    def _close(self, log: PartitionLog) -> LogDirectory | None:
        """The log's directory if it could not be closed in order."""
        try:
            log.close()
        except (StorageError, ApiError) as error:
            _logger.error("%s was not closed in order: %s", log.topic_partition, error)
            return log.home
        return None

    def _guarded(self, log: PartitionLog, work: Callable[[PartitionLog], object]) -> bool:
        """For background work: trouble with one log is not the others'. False if there was some."""
        try:
            work(log)
        except (StorageError, ApiError) as error:
            # Else it was deleted meanwhile, or the directory has said what is wrong.
            if self._logs.get(log.topic_partition) is log and not log.home.is_full:
                _logger.warning("%s: %s", log.topic_partition, error)
            return False
        return True

    def _write_checkpoints(self, home: LogDirectory) -> None:
        logs = [log for log in list(self._logs.values()) if log.home is home]
        high_watermarks = {log.topic_partition: log.high_watermark for log in logs}
        with self._checkpoint_guard:
            self._write_recovery_points(home, {})
            self._write(f"{home.path}/{LOG_START_CHECKPOINT}", log_starts(logs))
            self._write(f"{home.path}/{REPLICATION_CHECKPOINT}", high_watermarks)
        self._scrubbers[home].save(logs)

    def _write_recovery_points(
        self, home: LogDirectory, limits: Mapping[TopicPartition, int]
    ) -> None:
        logs = [log for log in list(self._logs.values()) if log.home is home]
        points = {
            log.topic_partition: min(
                log.flushed_offset, limits.get(log.topic_partition, log.flushed_offset)
            )
            for log in logs
        }
        for log in logs:
            if not self._guarded(log, PartitionLog.flush_leader_epochs):
                points[log.topic_partition] = log.log_start_offset
        self._write(f"{home.path}/{RECOVERY_POINT_CHECKPOINT}", points)

    def _write(self, path: str, offsets: Mapping[TopicPartition, int]) -> None:
        write_offsets(self._filesystem, path, offsets)

    def _remove(self, path: str, _home: LogDirectory) -> None:
        self._removals.remove(path)
