"""Opens the log of a partition: recovers what is on disk and loads it."""

from uuid import UUID

from ottla.protocol.topics import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.filesystem import Filesystem, parent_of
from ottla.storage.loading import load_log
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.producer_state import EXPIRATION_MS
from ottla.storage.recovery import LoadRequest


def open_partition_log(
    directory: str,
    topic_partition: TopicPartition,
    topic_id: UUID | None,
    config: LogConfig,
    filesystem: Filesystem,
    now_ms: int,
    *,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean_shutdown: bool = False,
    producer_expiration_ms: int = EXPIRATION_MS,
    log_directory: LogDirectory | None = None,
    checks_all: bool = False,
    pass_over_damage: bool = False,
    writes_survived: bool = False,
) -> PartitionLog:
    """Load the log in `directory`, or create an empty one there.

    After a clean shutdown nothing is checked. Otherwise the batches from the recovery point's
    segment on are checked, or all of them if `checks_all`: a tail damaged past the recovery point
    is truncated; damage before it is skipped or raises CorruptLog. If `writes_survived`, only the
    last write can be torn, and damage before it is skipped as well.
    """
    log_directory = log_directory or LogDirectory(parent_of(directory), filesystem)
    request = LoadRequest(
        directory=directory,
        topic_partition=topic_partition,
        config=config,
        now_ms=now_ms,
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean_shutdown=clean_shutdown,
        producer_expiration_ms=producer_expiration_ms,
        checks_all=checks_all,
        pass_over_damage=pass_over_damage,
        writes_survived=writes_survived,
    )
    loaded = load_log(log_directory, request)
    log = PartitionLog(log_directory, directory, topic_partition, topic_id, config, loaded)
    # A killed process may have written the topic id without syncing it.
    log.identity_unsynced = topic_id is not None and not clean_shutdown
    return log
