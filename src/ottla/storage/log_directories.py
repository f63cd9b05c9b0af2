"""The log directories of a broker (`log.dirs`): who owns them, and which of them are usable.

A directory is locked while the node runs. It stores the node id, the cluster id and its own id, and
after a clean shutdown the broker epoch of that run. A directory whose disk fails goes offline; the
others carry on.
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

logger = logging.getLogger(__name__)


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
        self.cluster_id = ""  # Set by `identify`.
        self.ids: dict[str, UUID | None] = {}  # By path; set by `identify`.
        self.broker_epoch = -1  # Of this run, for the next one; -1 before the broker is registered.
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
                # The metadata is in the first directory.
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
        """Check that they are this node's. Without a cluster id, use theirs or a new one."""
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
        """At startup, a full disk is an error: work that is later only delayed must be done now."""
        if log_directory.failure is not None:
            return
        try:
            work(log_directory)
        except OSError as error:
            log_directory.on_error(error)
            if log_directory.failure is None:
                raise StorageError(log_directory.path, error) from error

    def attempt(self, log_directory: LogDirectory, work: Callable[[LogDirectory], object]) -> None:
        """A disk error puts the directory offline and goes no further."""
        if log_directory.failure is not None:
            return
        try:
            work(log_directory)
        except OSError as error:
            log_directory.on_error(error)  # It logs the error.
        except StorageError as error:
            logger.warning("work on a log failed: %s", error)

    def sync_partitions(self) -> None:
        """Make the current set of partition directories survive a power loss."""
        for log_directory in self._all:
            self.attempt(log_directory, LogDirectory.sync_partitions)

    def online(self) -> list[LogDirectory]:
        return [log_directory for log_directory in self._all if log_directory.failure is None]

    @property
    def is_offline(self) -> bool:
        """Whether every directory is offline."""
        return not self.online()

    @property
    def offline_ids(self) -> list[UUID]:
        """Directories that failed after they were identified."""
        return self._ids_of(log_directory for log_directory in self._all if log_directory.failure)

    @property
    def full_ids(self) -> list[UUID]:
        return self._ids_of(log_directory for log_directory in self._all if log_directory.is_full)

    def is_out_of_reach(self, directory_id: UUID | None) -> bool:
        """Whether a directory that was not found may be one that is offline."""
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
        """New logs go to other directories while there is one (KIP-1066)."""
        for log_directory in self._all:
            log_directory.is_cordoned = is_cordoned(log_directory.path)

    def look_for_room(self) -> None:
        """Update which directories are full or have room again."""
        now_ms = self._clock_ms()
        for log_directory in self.online():
            log_directory.look_for_room(now_ms)

    def check(self) -> None:
        """Take directories that have disappeared offline."""
        for log_directory in self._all:
            self.attempt(log_directory, LogDirectory.check_in_place)

    def is_in_place(self, path: str) -> bool:
        return next(
            log_directory for log_directory in self._all if log_directory.path == path
        ).is_in_place()

    @property
    def previous_broker_epoch(self) -> int:
        """The last run's, if all directories have what it had (KIP-966); otherwise -1."""
        if len(self.online()) < len(self._all):
            return -1
        return max(self.previous_epochs) if len(self.previous_epochs) == 1 else -1

    def write_broker_epoch(self) -> None:
        """Call only if a crash would lose nothing that this broker claims to have."""
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
