"""Loads the partitions of one log directory at startup."""

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from typing import NamedTuple

from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.storage.checkpoints import (
    LOG_START_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REPLICATION_CHECKPOINT,
    is_same_boot,
    read_broker_epoch,
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    remove_clean_shutdown,
    write_boot,
)
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptLog
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.opening import open_partition_log
from ottla.storage.partition_names import is_deleted, is_stray, parse_future, parse_partition
from ottla.storage.recovery import LoadRequest
from ottla.storage.text_checkpoint import CorruptCheckpoint

logger = logging.getLogger(__name__)

STRAYS_NAMED = 5


class LoadedDirectory(NamedTuple):
    logs: list[PartitionLog]
    futures: list[PartitionLog]  # Replicas moving into the directory; see `future_logs`.
    corrupt: dict[TopicPartition, CorruptLog]
    broker_epoch: int  # Of the last run, if none of its data is lost; otherwise -1.


class DirectoryLoader:
    def __init__(
        self,
        log_directory: LogDirectory,
        config_of_topic: Callable[[str], LogConfig],
        now_ms: int,
        producer_expiration_ms: int,
    ) -> None:
        self._log_directory = log_directory
        self._config_of_topic = config_of_topic
        self._now_ms = now_ms
        self._producer_expiration_ms = producer_expiration_ms
        self._clean_shutdown = False
        self._writes_survived = False
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._nameless: list[CorruptCheckpoint] = []  # Partitions whose topic id cannot be read.

    def load(self, threads: Executor) -> LoadedDirectory:
        """Load in parallel. OSError and StorageError concern the whole directory."""
        log_directory = self._log_directory
        filesystem = log_directory.filesystem
        clean_epoch = read_clean_shutdown(filesystem, log_directory.path)
        self._clean_shutdown = clean_epoch is not None
        self._writes_survived = self._clean_shutdown or is_same_boot(filesystem, log_directory.path)
        write_boot(filesystem, log_directory.path)
        crash_epoch = read_broker_epoch(filesystem, log_directory.path)
        remove_clean_shutdown(filesystem, log_directory.path)
        self._recovery_points = self._read_offsets(RECOVERY_POINT_CHECKPOINT)
        self._log_starts = self._read_offsets(LOG_START_CHECKPOINT)
        self._high_watermarks = self._read_offsets(REPLICATION_CHECKPOINT)
        logs: list[PartitionLog] = []
        corrupt: dict[TopicPartition, CorruptLog] = {}
        for log in threads.map(self._load_partition, self._partitions()):
            if isinstance(log, PartitionLog):
                logs.append(log)
            else:
                topic_partition, error = log
                corrupt[topic_partition] = error
        if not self._clean_shutdown and logs:
            logger.info(
                "%s was not closed cleanly; %d partitions were checked and recovered",
                log_directory.path,
                len(logs),
            )
        if self._nameless:
            logger.warning(
                "cannot read the topic ids of %d partitions, first: %s",
                len(self._nameless),
                self._nameless[0],
            )
        self._report_strays()
        epochs = (epoch for epoch in (clean_epoch, crash_epoch) if epoch is not None)
        has_all = not corrupt and not any(log.may_lack_synced for log in logs)
        epoch = max(epochs, default=-1) if has_all else -1
        return LoadedDirectory(logs, self._load_futures(), corrupt, epoch)

    def _partitions(self) -> Iterator[TopicPartition]:
        for name in self._log_directory.filesystem.list(self._log_directory.path):
            path = f"{self._log_directory.path}/{name}"
            topic_partition = parse_partition(name)
            if is_deleted(name):
                self._log_directory.discard([path], 0)
            elif topic_partition and topic_partition.topic != CLUSTER_METADATA_TOPIC:
                yield topic_partition

    def _load_futures(self) -> list[PartitionLog]:
        """Check all of it: a crash may have left anything there."""
        futures = []
        self._recovery_points, self._log_starts = {}, {}
        for name in self._log_directory.filesystem.list(self._log_directory.path):
            topic_partition = parse_future(name)
            if topic_partition is None:
                continue
            try:
                log = self._open(name, topic_partition)
            except CorruptLog as error:
                logger.warning("%s is copied again from the start: %s", topic_partition, error)
                deleted = name.removesuffix("-future") + "-delete"
                path = f"{self._log_directory.path}/{deleted}"
                self._log_directory.filesystem.rename(error.directory, path)
                self._log_directory.discard([path], 0)
                continue
            futures.append(log)
        return futures

    def _report_strays(self) -> None:
        strays = [
            name
            for name in self._log_directory.filesystem.list(self._log_directory.path)
            if is_stray(name)
        ]
        if strays:
            more = f" and {len(strays) - STRAYS_NAMED} more" if len(strays) > STRAYS_NAMED else ""
            logger.warning(
                "%s: %d set aside under a name that ends in -stray, to be removed by hand: %s%s",
                self._log_directory.path,
                len(strays),
                ", ".join(strays[:STRAYS_NAMED]),
                more,
            )

    def _load_partition(
        self, topic_partition: TopicPartition
    ) -> PartitionLog | tuple[TopicPartition, CorruptLog]:
        try:
            log = self._open(str(topic_partition), topic_partition)
        except CorruptLog as error:
            logger.error("%s is not served: %s", topic_partition, error)
            return topic_partition, error
        high_watermark = self._high_watermarks.get(topic_partition, 0)
        log.high_watermark = min(max(high_watermark, log.log_start_offset), log.log_end_offset)
        return log

    def _open(self, name: str, topic_partition: TopicPartition) -> PartitionLog:
        directory = f"{self._log_directory.path}/{name}"
        try:
            topic_id = read_partition_metadata(self._log_directory.filesystem, directory)
        except CorruptCheckpoint as error:
            self._nameless.append(error)
            topic_id = None
        request = LoadRequest(
            directory,
            topic_partition,
            self._config_of_topic(topic_partition.topic),
            self._now_ms,
            topic_id,
            recovery_point=self._recovery_points.get(topic_partition, 0),
            log_start_offset=self._log_starts.get(topic_partition, 0),
            clean_shutdown=self._clean_shutdown,
            producer_expiration_ms=self._producer_expiration_ms,
            pass_over_damage=True,
            writes_survived=self._writes_survived,
        )
        return open_partition_log(self._log_directory, request)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        try:
            return read_offsets(
                self._log_directory.filesystem, f"{self._log_directory.path}/{name}"
            )
        except CorruptCheckpoint as error:
            logger.warning("continuing without a checkpoint: %s", error)
            self._clean_shutdown = False
            return {}
