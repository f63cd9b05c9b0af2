"""One of the directories that hold partitions, as its logs see it.

A directory whose disk failed goes offline: every later operation on its logs raises the first
StorageError, so that nothing is acknowledged on a disk whose state is unknown.

A directory whose disk is full (`disk_space`) stays online; appends are refused until there is room
again, and in the meantime replicas that exist elsewhere are left to the other brokers.
"""

import errno
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.storage.disk_space import DiskSpace
from ottla.storage.errors import StorageError
from ottla.storage.filesystem import Filesystem
from ottla.storage.open_files import OpenFiles

logger = logging.getLogger(__name__)

SHORT_OF_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_SHORT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})

OPEN_FILES_MAX = 2000


class Discarded(NamedTuple):
    """A file that is no longer part of a log; a broker start also removes it."""

    path: str
    delay_ms: int


class Suspect(NamedTuple):
    """A segment that a reader found to look damaged."""

    topic_partition: TopicPartition
    base_offset: int


class LogDirectory:
    __slots__ = (
        "_changes_count",
        "_changes_synced",
        "_on_failure",
        "_on_full",
        "_shortage_reported",
        "_space",
        "discarded",
        "failure",
        "filesystem",
        "is_cordoned",
        "is_full",
        "is_in_place",
        "is_reserved",
        "open_files",
        "path",
        "suspects",
    )

    def __init__(
        self,
        path: str,
        filesystem: Filesystem,
        *,
        open_files_max: int = OPEN_FILES_MAX,
        on_failure: Callable[[StorageError], object] | None = None,
        on_full: Callable[[], object] | None = None,
        reserve_bytes: int = 0,
    ) -> None:
        """`on_full` is called, in any thread, when the directory fills up or has room again."""
        self.path = path
        self.filesystem = filesystem
        self.open_files = OpenFiles(filesystem, open_files_max)
        self.discarded: deque[Discarded] = deque()  # Files to remove in the background.
        self.suspects: deque[Suspect] = deque()  # To be examined in the background.
        self.failure: StorageError | None = None
        self.is_cordoned = False
        self.is_in_place: Callable[[], bool] = lambda: True  # Set once the directory is locked.
        self.is_full = False
        self._on_failure = on_failure
        self._on_full = on_full
        self.is_reserved = False  # The remaining space is reserved for metadata.
        self._space = DiskSpace(filesystem, path, reserve_bytes=reserve_bytes)
        # Partitions created, renamed or removed by this process, and perhaps by an earlier one that
        # was killed before it could sync them.
        self._changes_count = 1
        self._changes_synced = 0  # How many of these changes are on disk.
        self._shortage_reported = False

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure.with_traceback(None)  # Raised often; would accumulate frames.

    def check_in_place(self) -> None:
        """OSError if the directory was removed or replaced while the node runs.

        Open files would still accept writes that nobody will ever find.
        """
        if not self.is_in_place():
            raise FileNotFoundError(
                errno.ENOENT, "it was removed or replaced while the node uses it", self.path
            )

    def check_room(self) -> None:
        """Call before records are appended."""
        if self.is_reserved:
            raise ApiError(ErrorCode.kafka_storage_error, f"log directory {self.path} is full")

    def on_partitions_changed(self) -> None:
        """The next flush of any log here syncs the names: one sync for many partitions."""
        self._changes_count += 1

    def sync_partitions(self) -> None:
        count = self._changes_count
        if count > self._changes_synced:
            self.filesystem.sync_directory(self.path)
            self._changes_synced = max(self._changes_synced, count)

    def suspect(self, topic_partition: TopicPartition, base_offset: int, reason: str) -> None:
        """Callable from any thread; queues each segment once until it is examined."""
        suspect = Suspect(topic_partition, base_offset)
        if suspect not in self.suspects:
            self.suspects.append(suspect)
            logger.error("checking %s, which looks damaged: %s", topic_partition, reason)

    def discard(self, paths: Iterable[str], delay_ms: int) -> None:
        self.discarded.extend(Discarded(path, delay_ms) for path in paths)

    def on_error(self, cause: OSError, *, while_syncing: bool = False) -> Exception:
        """The exception to raise for a disk error; takes the directory offline unless it is full.

        A full disk has lost nothing, nor has a process that ran out of descriptors: the operation
        is refused and may be retried. If a sync finds the disk full, what was written is lost.
        """
        if cause.errno in SHORT_OF_SPACE and not while_syncing:
            if not self.is_full:
                self._set_full(True)
            return self._short(f"log directory {self.path} is full: {cause}")
        if cause.errno in _SHORT_OF_DESCRIPTORS:
            return self._short(f"no file of log directory {self.path} can be opened: {cause}")
        if self.failure is None:
            self.failure = StorageError(self.path, cause)
            logger.error("log directory %s goes offline: %s", self.path, cause)
            if self._on_failure is not None:
                self._on_failure(self.failure)
        return self.failure

    def report_shortages_again(self) -> None:
        """Called periodically, so that a disk that stays full is reported, but not all the time."""
        self._shortage_reported = False

    def look_for_room(self, now_ms: float) -> None:
        """Called periodically, in one thread: checks whether the disk is full or has room again."""
        try:
            is_full = self._space.look(now_ms, is_full=self.is_full)
        except OSError as error:
            self.on_error(error)
            return
        if is_full and not self.is_full:
            self._short(f"log directory {self.path} is full: hardly any space is left")
        if is_full is not self.is_full:
            self._set_full(is_full)

    def _set_full(self, is_full: bool) -> None:
        self.is_full = is_full
        self.is_reserved = is_full and self._space.give_up_reserve()
        if not is_full:
            logger.info("log directory %s has room again", self.path)
        if self._on_full is not None:
            self._on_full()

    def _short(self, message: str) -> ApiError:
        if not self._shortage_reported:
            self._shortage_reported = True
            logger.warning("writes are refused: %s", message)
        return ApiError(ErrorCode.kafka_storage_error, message)
