"""All partition logs of a broker, in one or more log directories.

The event loop creates, finds and deletes logs. Threads run what waits for the disk: `start`,
`flush`, `retain`, `clean`, `checkpoint`, `truncate` and `stop`; these may run concurrently with one
another and with the event loop.

A directory whose disk fails goes offline with its logs; the others carry on.
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
from ottla.storage.checkpoint_writer import CheckpointWriter
from ottla.storage.cleaner import LogCleaner
from ottla.storage.config import LogConfig
from ottla.storage.corrupt_logs import CorruptLogs
from ottla.storage.counters import StorageCounters
from ottla.storage.directory_info import DirectoryInfo
from ottla.storage.directory_loader import DirectoryLoader, LoadedDirectory
from ottla.storage.errors import CorruptLog, StorageError
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.future_logs import FutureLogs, has_more
from ottla.storage.log import PartitionLog
from ottla.storage.log_directories import LogDirectories
from ottla.storage.log_directory import LogDirectory
from ottla.storage.log_maker import LogMaker
from ottla.storage.partition_names import name_for_deletion, name_for_stray
from ottla.storage.removals import Removals
from ottla.storage.scrubber import DirectoryScrubber
from ottla.storage.throttle import Throttle

logger = logging.getLogger(__name__)

SCRUBS_PER_SECOND = 4  # In short turns, because a computing thread holds up the event loop.
_CLOSING_THREADS_MIN = 8  # They wait for syncs, which the disk combines.


class LogManager:
    def __init__(
        self,
        directories: Sequence[str],
        filesystem: Filesystem,
        clock_ms: Callable[[], int],
        *,
        broker: ConfigValues | None = None,
        config_of_topic: Callable[[str], LogConfig] = lambda _: LogConfig(),
        on_failure: Callable[[StorageError], object] | None = None,
        on_full: Callable[[], object] | None = None,
        new_id: Callable[[], UUID] = uuid4,
        new_threads: Callable[[int, str], Executor] = ThreadPoolExecutor,
    ) -> None:
        """`on_failure` is called, in any thread, for each directory that goes offline.

        `on_full` likewise when one fills up or has room again.
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
        self._maker = LogMaker(clock_ms, values[PRODUCER_ID_EXPIRATION_MS])
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._counts = dict.fromkeys(self.log_dirs, 0)  # Logs in each directory.
        self._damaged: dict[PartitionLog, None] = {}  # Logs that have damage or had some.
        self.corrupt = CorruptLogs(filesystem, new_id)  # Not served at all.
        self._strangers: dict[TopicPartition, PartitionLog] = {}  # Logs whose topic id is unknown.
        self.futures = FutureLogs(self.log_dirs, new_id, self._maker)
        self.removals = Removals(self.log_dirs, clock_ms)
        self._checkpoints = CheckpointWriter(
            filesystem,
            self._logs_in,
            lambda log: self._guarded(log, PartitionLog.flush_leader_epochs),
        )
        self._stopping = threading.Event()
        self._throttle = Throttle(
            values[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND], clock_ms, self._stopping.wait
        )
        self._cleaner = LogCleaner(
            filesystem,
            clock_ms,
            dedupe_buffer_size=values[LOG_CLEANER_DEDUPE_BUFFER_SIZE],
            io_buffer_size=values[LOG_CLEANER_IO_BUFFER_SIZE],
            on_work=self._throttle.done,
            should_stop=self._stopping.is_set,
        )
        self._scrub_bytes = values[LOG_SCRUB_BYTES_PER_SECOND]
        self._scrubbers = {
            log_directory: DirectoryScrubber(
                log_directory, clock_ms, values[LOG_SCRUB_INTERVAL_MS], self._on_damage
            )
            for log_directory in self.log_dirs
        }

    def start(self, node_id: int, cluster_id: str | None = None) -> None:
        """Lock the directories, check that they are this node's, and load their logs.

        Without a cluster id, uses that of the directories or a new one. WrongDirectory aborts the
        start; a directory whose disk fails is skipped, unless it is the last one.
        """
        try:
            self.log_dirs.lock()
            self.log_dirs.identify(node_id, cluster_id)
            self._load_all()
        except BaseException:
            self.log_dirs.release()
            raise

    def _load_all(self) -> None:
        log_directories = self.log_dirs
        loaded: list[LoadedDirectory] = []
        work = partial(self._load, loaded)
        with self._new_threads(len(log_directories), "load-directories") as threads:
            list(threads.map(lambda path: log_directories.take_up(path, work), log_directories))
        for directory in loaded:
            for log in directory.logs:
                self._take_up(log)
        futures = [future for directory in loaded for future in directory.futures]
        for log in self.futures.take_up(futures, self._logs):
            self._add(log)
        failures = [
            log_directory.failure
            for log_directory in log_directories
            if log_directory.failure is not None
        ]
        if len(failures) == len(log_directories):
            raise failures[0]

    def get(
        self, topic_partition: TopicPartition, topic_id: UUID | None = None
    ) -> PartitionLog | None:
        """Also None if the log found belongs to a topic with another id."""
        log = self._logs.get(topic_partition)
        if log is None or (topic_id is not None and log.topic_id != topic_id):
            return None
        return log

    def logs(self) -> Iterator[PartitionLog]:
        """The logs in online directories."""
        return (log for log in list(self._logs.values()) if log.log_directory.failure is None)

    def create(
        self, topic_partition: TopicPartition, topic_id: UUID, config: LogConfig
    ) -> PartitionLog:
        """Create the log of a partition, in the directory with the fewest.

        A log of another topic with the same name is set aside. Nothing is synced: the first flush
        does that for all partitions created before it.
        """
        corrupt = self.corrupt.find(topic_partition, topic_id)
        if corrupt is not None:
            raise ApiError(ErrorCode.kafka_storage_error, str(corrupt))
        existing = self._logs.get(topic_partition)
        if existing is not None:
            if existing.topic_id == topic_id:
                existing.log_directory.check_online()
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
        """Take a log out of service at once; its files are removed after file.delete.delay.ms."""
        corrupt = self.corrupt.take_deletable(topic_partition)
        if corrupt is not None:
            self._delete_corrupt(topic_partition, corrupt)
        log = self._logs.get(topic_partition)
        if log is None:
            return
        self.retire(log)
        self._forget(log)

    def set_aside(self, topic_partition: TopicPartition) -> None:
        """Take a log out of service whose topic the cluster does not have.

        The metadata may be what is wrong, so nothing is removed: the directory gets a name that
        ends in `-stray`, for a person to remove or rename.
        """
        log = self._logs[topic_partition]
        if log.log_directory.failure is None:
            before = log.directory
            path = f"{log.log_directory.path}/{name_for_stray(topic_partition, self._new_id())}"
            if self._rename(log, path):
                logger.warning(
                    "the cluster has no topic with the id %s of %s; the directory is set aside as "
                    "%s; remove it by hand",
                    log.topic_id,
                    before,
                    path,
                )
        self._forget(log)

    def promote(self, future: PartitionLog) -> PartitionLog:
        """Make the moved replica the log; returns the former one, to be retired."""
        topic_partition = future.topic_partition
        log = self._logs[topic_partition]
        future.rename(f"{future.log_directory.path}/{topic_partition}", instead_of=log)
        del self.futures.all[topic_partition]
        self._forget(log)
        self._add(future)
        return log

    def settle(self, log_directory: LogDirectory) -> None:
        """Write checkpoints and sync names; in a thread, before and after a move."""
        self.log_dirs.attempt(log_directory, self._write_checkpoints)
        self.log_dirs.attempt(log_directory, LogDirectory.sync_partitions)

    def retire(self, log: PartitionLog) -> None:
        """Rename its directory for deletion, once another was promoted, synced and settled."""
        if log.log_directory.failure is None:
            path = self._path_for_deletion(log.log_directory, log.topic_partition)
            self._rename(log, path)
            log.log_directory.discard([path], log.config.file_delete_delay_ms)

    def _rename(self, log: PartitionLog, path: str) -> bool:
        self._cleaner.on_deleted(log.directory, log.topic_partition)
        return self._guarded(log, lambda log: log.rename_for_deletion(path))

    def _forget(self, log: PartitionLog) -> None:
        self.futures.discard(log.topic_partition)
        del self._logs[log.topic_partition]
        self._damaged.pop(log, None)
        self._counts[log.log_directory] -= 1

    @property
    def damaged(self) -> list[PartitionLog]:
        """The logs that cannot be served completely."""
        return [
            log
            for log in list(self._damaged)
            if log.damage and self._logs.get(log.topic_partition) is log
        ]

    @property
    def uncleanable_count(self) -> int:
        """The number of logs that are not compacted because they are damaged."""
        return self._cleaner.uncleanable_count

    def flush(self) -> None:
        """Sync every log with unsynced data."""
        for log in self.logs():
            if log.flushed_offset < log.log_end_offset:
                self._guarded(log, PartitionLog.flush)

    def reconfigure(self, values: ConfigValues) -> None:
        """Apply dynamic settings; each takes effect from the next round of its job."""
        self._threads_count = values[NUM_RECOVERY_THREADS_PER_DATA_DIR]
        self._throttle.bytes_per_second = values[LOG_CLEANER_IO_MAX_BYTES_PER_SECOND]
        self._cleaner.dedupe_buffer_size = values[LOG_CLEANER_DEDUPE_BUFFER_SIZE]
        self._cleaner.io_buffer_size = values[LOG_CLEANER_IO_BUFFER_SIZE]
        self._maker.producer_expiration_ms = values[PRODUCER_ID_EXPIRATION_MS]
        for log in self.logs():
            log.producers.expiration_ms = self._maker.producer_expiration_ms

    def retain(self) -> None:
        """Remove expired segments from the logs."""
        now_ms = self._clock_ms()
        for log in self.logs():
            self._guarded(log, lambda log: self.counters.delete_expired(log, now_ms))

    def expire_producers(self) -> None:
        """Forget idle producers."""
        now_ms = self._clock_ms()
        for log in self.logs():
            self._guarded(log, lambda log: log.expire_producers(now_ms))

    def clean(self) -> bool:
        """Compact the logs that are due, the most urgent first; False if none was."""
        count = 0
        try:
            while count < len(self._logs) and not self._stopping.is_set():
                cleaned = self._cleaner.clean_filthiest(self.logs())
                if cleaned is None:
                    break
                self.counters.on_cleaned(cleaned)
                count += 1
        except (StorageError, ApiError) as error:
            logger.warning("compaction stopped: %s", error)
        return count > 0

    @property
    def is_scrub_due(self) -> bool:
        return any(scrubber.is_due(self._scrub_bytes) for scrubber in self._scrubbers.values())

    def scrub(self) -> None:
        """Called SCRUBS_PER_SECOND times: checks part of each directory, and suspect segments."""
        for log_directory, scrubber in self._scrubbers.items():
            if not self._stopping.is_set():
                self.log_dirs.attempt(log_directory, partial(self._scrub, scrubber))

    def _scrub(self, scrubber: DirectoryScrubber, _log_directory: LogDirectory) -> None:
        scrubber.step(dict(self._logs), self._scrub_bytes // SCRUBS_PER_SECOND)

    def checkpoint(self) -> None:
        """Write recovery points, high watermarks, log start offsets and the active indexes."""
        for log in self.logs():
            self._guarded(log, PartitionLog.write_indexes)
        for log_directory in self.log_dirs:
            log_directory.report_shortages_again()
            self.log_dirs.attempt(log_directory, self._write_checkpoints)

    def truncate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Truncate logs, after writing their recovery points once for all of them.

        A log deleted meanwhile is skipped.
        """
        self._truncate(offsets, PartitionLog.end_before, PartitionLog.truncate_to)

    def start_anew(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Like `truncate`: empty logs, which then begin at these offsets."""
        self._truncate(offsets, lambda _, offset: offset, PartitionLog.truncate_fully_and_start_at)

    def _truncate(
        self,
        offsets: Mapping[TopicPartition, int],
        end_before: Callable[[PartitionLog, int], int],
        truncate: Callable[[PartitionLog, int], None],
    ) -> None:
        logs = [log for key in offsets if (log := self._logs.get(key)) is not None]
        with self._checkpoints.guard:
            ends = {
                log.topic_partition: end_before(log, offsets[log.topic_partition]) for log in logs
            }
            for log_directory in dict.fromkeys(log.log_directory for log in logs):
                self.log_dirs.attempt(
                    log_directory,
                    lambda directory: self._checkpoints.write_recovery_points(directory, ends),
                )
            for log in logs:
                offset = offsets[log.topic_partition]
                truncate(log, offset)
                self._cleaner.on_truncated(log, offset)

    def directories(self) -> list[DirectoryInfo]:
        logs, moves = list(self._logs.values()), self.futures.moves(self._logs)
        return [DirectoryInfo.of(directory, logs, moves) for directory in self.log_dirs]

    def stop(self) -> None:
        """Close every log; the next start finds a clean shutdown where everything succeeded."""
        self._stopping.set()
        futures = [log for log in self.futures.all.values() if log.log_directory.failure is None]
        count = max(self._threads_count, _CLOSING_THREADS_MIN) * len(self.log_dirs)
        with self._new_threads(count, "close-logs") as threads:
            failed = set(filter(None, threads.map(self._close, [*self.logs(), *futures])))
        for log_directory in self.log_dirs:
            self.log_dirs.attempt(log_directory, self._write_checkpoints)
            if log_directory not in failed:
                self.log_dirs.attempt(log_directory, self.log_dirs.write_clean_shutdown)
        self.log_dirs.release()

    def _load(self, loaded: list[LoadedDirectory], log_directory: LogDirectory) -> None:
        loader = DirectoryLoader(
            log_directory,
            self._config_of_topic,
            self._clock_ms(),
            self._maker.producer_expiration_ms,
        )
        with self._new_threads(self._threads_count, "load-logs") as threads:
            directory = loader.load(threads)
        loaded.append(directory)
        self.log_dirs.previous_epochs.add(directory.broker_epoch)
        self.corrupt.all |= directory.corrupt
        self._scrubbers[log_directory].load()

    def _take_up(self, log: PartitionLog) -> None:
        other = self._logs.get(log.topic_partition)
        if log.topic_id is None:
            self._strangers[log.topic_partition] = log
        elif other is None:
            self._add(log)
        elif log.topic_id != other.topic_id:
            logger.error("%s is not served: %s has its name", log.directory, other.directory)
        elif has_more(log, other):
            self._forget(other)
            self.futures.set_duplicate_aside(other, log)
            self._add(log)
        else:
            self.futures.set_duplicate_aside(log, other)

    def _make(self, topic_partition: TopicPartition, config: LogConfig) -> PartitionLog:
        online = self.log_dirs.online()
        if not online:
            raise ApiError(ErrorCode.kafka_storage_error, "every log directory is offline")
        log_directory = self.futures.take_wish(topic_partition) or min(
            online,
            key=lambda log_directory: (log_directory.is_cordoned, self._counts[log_directory]),
        )
        return self._maker.make(log_directory, str(topic_partition), topic_partition, config)

    def _delete_corrupt(self, topic_partition: TopicPartition, corrupt: CorruptLog) -> None:
        data_directory = parent_of(corrupt.directory)
        log_directory = next(each for each in self.log_dirs if each.path == data_directory)
        path = self._path_for_deletion(log_directory, topic_partition)
        self.log_dirs.attempt(
            log_directory, lambda _: self._filesystem.rename(corrupt.directory, path)
        )
        log_directory.discard([path], 0)

    def _path_for_deletion(
        self, log_directory: LogDirectory, topic_partition: TopicPartition
    ) -> str:
        return f"{log_directory.path}/{name_for_deletion(topic_partition, self._new_id())}"

    def _on_damage(self, log: PartitionLog) -> None:
        """Called in any thread."""
        self._damaged[log] = None

    def _add(self, log: PartitionLog) -> None:
        if log.damage:
            self._on_damage(log)
        self._logs[log.topic_partition] = log
        self._counts[log.log_directory] += 1

    def _close(self, log: PartitionLog) -> LogDirectory | None:
        """The log's directory if the log could not be closed cleanly."""
        try:
            log.close()
        except (StorageError, ApiError) as error:
            logger.error("%s was not closed cleanly: %s", log.topic_partition, error)
            return log.log_directory
        return None

    def _guarded(self, log: PartitionLog, work: Callable[[PartitionLog], object]) -> bool:
        """Run background work; a failing log does not affect the others. False if it failed."""
        try:
            work(log)
        except (StorageError, ApiError) as error:
            # Otherwise the log was deleted, or its directory has already reported the problem.
            if self._logs.get(log.topic_partition) is log and not log.log_directory.is_full:
                logger.warning("work on %s failed: %s", log.topic_partition, error)
            return False
        return True

    def _write_checkpoints(self, log_directory: LogDirectory) -> None:
        logs = self._logs_in(log_directory)
        self._checkpoints.write(log_directory)
        self._scrubbers[log_directory].save(logs)

    def _logs_in(self, log_directory: LogDirectory) -> list[PartitionLog]:
        return [log for log in list(self._logs.values()) if log.log_directory is log_directory]
