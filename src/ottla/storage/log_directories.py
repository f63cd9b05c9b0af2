"""The log directories of a broker (`log.dirs`): whose they are, and which of them can be used.

A directory is locked while the node runs. It knows the node, the cluster and its own id, and after
a clean shutdown the broker epoch of that life. One whose disk fails goes offline; the others go on.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from uuid import UUID

from ottla.storage.checkpoints import write_broker_epoch, write_clean_shutdown
from ottla.storage.directory_identity import (
    format_id,
    identify_directory,
    is_in_place,
    lock_directory,
    parse_directory_id,
    read_identity,
)
from ottla.storage.disk_space import RESERVE_BYTES
from ottla.storage.errors import StorageError
from ottla.storage.filesystem import Filesystem, Lock
from ottla.storage.log_directory import LogDirectory

_logger = logging.getLogger(__name__)


class LogDirectories:
    def __init__(
        self,
        paths: Sequence[str],
        filesystem: Filesystem,
        *,
        open_files_max: int,
        clock_ms: Callable[[], int],
        new_id: Callable[[], UUID],
        on_failure: Callable[[StorageError], object] | None,
        on_full: Callable[[], object] | None,
    ) -> None:
        assert paths
        self.cluster_id = ""  # Known after `identify`.
        self.ids: dict[str, UUID | None] = {}  # By path; known after `identify`.
        self.broker_epoch = -1  # Of this life, for the next one; -1 before it is registered.
        self.previous_epochs: set[int] = set()  # As found in the directories.
        self._filesystem = filesystem
        self._clock_ms = clock_ms
        self._new_id = new_id
        self._locks: dict[LogDirectory, Lock] = {}
        self._all = [
            LogDirectory(
                path.rstrip("/"),
                filesystem,
                open_files_max=max(1, open_files_max // len(paths)),
                on_failure=on_failure,
                on_full=on_full,
                # The metadata is in the first one.
                reserve_bytes=0 if index else RESERVE_BYTES,
            )
            for index, path in enumerate(paths)
        ]

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def lock(self) -> None:
        for log_directory in self._all:
            self.take_up(log_directory, self._lock)

    def identify(self, node_id: int, cluster_id: str | None) -> None:
        """Check that they are this node's. Without a cluster id it is theirs, or a new one."""
        self.cluster_id = cluster_id or self._find_cluster_id() or format_id(self._new_id())
        for log_directory in self._all:
            self.take_up(
                log_directory, lambda log_directory: self._identify(log_directory, node_id)
            )

    def release(self) -> None:
        for lock in self._locks.values():
            lock.release()
        self._locks.clear()

    def take_up(self, log_directory: LogDirectory, work: Callable[[LogDirectory], object]) -> None:
        """What a full disk only delays later on must not be left out of a start."""
        if log_directory.failure is not None:
            return
        try:
            work(log_directory)
        except OSError as error:
            log_directory.on_error(error)
            if log_directory.failure is None:
                raise StorageError(log_directory.path, error) from error

    def attempt(self, log_directory: LogDirectory, work: Callable[[LogDirectory], object]) -> None:
        """Errors of the disk put the directory offline and go no further."""
        if log_directory.failure is not None:
            return
        try:
            work(log_directory)
        except OSError as error:
            log_directory.on_error(error)  # Which logs it.
        except StorageError as error:
            _logger.warning("work on a log failed: %s", error)

    def sync_partitions(self) -> None:
        """Which directories of partitions there are holds though the power fails."""
        for log_directory in self._all:
            self.attempt(log_directory, LogDirectory.sync_partitions)

    def online(self) -> list[LogDirectory]:
        return [log_directory for log_directory in self._all if log_directory.failure is None]

    @property
    def is_offline(self) -> bool:
        """Every directory is."""
        return not self.online()

    @property
    def offline_ids(self) -> list[UUID]:
        """Of those that failed after they were known."""
        return self._ids_of(log_directory for log_directory in self._all if log_directory.failure)

    @property
    def full_ids(self) -> list[UUID]:
        return self._ids_of(log_directory for log_directory in self._all if log_directory.is_full)

    def is_out_of_reach(self, directory_id: UUID | None) -> bool:
        """Whether a directory that is not here may be one of those that are offline."""
        online = self.online()
        return (
            directory_id is not None
            and directory_id not in self._ids_of(online)
            and len(online) < len(self._all)
        )

    @property
    def open_files_count(self) -> int:
        return sum(len(log_directory.open_files) for log_directory in self._all)

    def cordon(self, is_cordoned: Callable[[str], bool]) -> None:
        """New logs go to other directories, as long as there is one (KIP-1066)."""
        for log_directory in self._all:
            log_directory.is_cordoned = is_cordoned(log_directory.path)

    def look_for_room(self) -> None:
        """Whether directories are full, or have room again."""
        now_ms = self._clock_ms()
        for log_directory in self.online():
            log_directory.look_for_room(now_ms)

    def check(self) -> None:
        """Put directories offline that are not there any more."""
        for log_directory in self._all:
            self.attempt(log_directory, LogDirectory.check_in_place)

    def is_in_place(self, path: str) -> bool:
        return next(
            log_directory for log_directory in self._all if log_directory.path == path
        ).is_in_place()

    @property
    def previous_broker_epoch(self) -> int:
        """Of the last life, if all directories have what that one had (KIP-966); otherwise -1."""
        if len(self.online()) < len(self._all):
            return -1
        return max(self.previous_epochs) if len(self.previous_epochs) == 1 else -1

    def write_broker_epoch(self) -> None:
        """Only if nothing that this broker says it has is lost by a crash."""
        for log_directory in self._all:
            self.attempt(
                log_directory,
                lambda log_directory: write_broker_epoch(
                    self._filesystem, log_directory.path, self.broker_epoch
                ),
            )

    def write_clean_shutdown(self, log_directory: LogDirectory) -> None:
        write_clean_shutdown(self._filesystem, log_directory.path, self.broker_epoch)

    def _ids_of(self, log_directories: Iterable[LogDirectory]) -> list[UUID]:
        return list(
            filter(None, (self.ids.get(log_directory.path) for log_directory in log_directories))
        )

    def _lock(self, log_directory: LogDirectory) -> None:
        self._locks[log_directory] = lock_directory(self._filesystem, log_directory.path)

    def _find_cluster_id(self) -> str | None:
        for log_directory in self.online():
            identity = read_identity(self._filesystem, log_directory.path)
            if identity is not None:
                return identity.cluster_id
        return None

    def _identify(self, log_directory: LogDirectory, node_id: int) -> None:
        meta = identify_directory(
            self._filesystem, log_directory.path, node_id, self.cluster_id, self._new_id()
        )
        self.ids[log_directory.path] = parse_directory_id(meta.directory_id)
        log_directory.is_in_place = partial(
            is_in_place, self._filesystem, log_directory.path, self._locks[log_directory]
        )
