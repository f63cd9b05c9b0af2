"""Files of deleted logs and segments, kept for a while because readers may still hold them."""

from collections.abc import Callable, Iterable, Iterator

from ottla.storage.filesystem import Filesystem
from ottla.storage.log_directory import LogDirectory
from ottla.storage.partition_names import is_deleted


class Removals:
    def __init__(
        self,
        log_directories: Iterable[LogDirectory],
        filesystem: Filesystem,
        clock_ms: Callable[[], int],
    ) -> None:
        self._log_directories = log_directories
        self._filesystem = filesystem
        self._clock_ms = clock_ms
        self._waiting: list[tuple[int, LogDirectory, str]] = []  # Due time, log directory, path.

    def take_due(self) -> Iterator[tuple[LogDirectory, str]]:
        """The discarded files whose delay has passed."""
        now_ms = self._clock_ms()
        for log_directory in self._log_directories:
            while log_directory.discarded:
                path, delay_ms = log_directory.discarded.popleft()
                self._waiting.append((now_ms + delay_ms, log_directory, path))
        due = [removal for removal in self._waiting if removal[0] <= now_ms]
        self._waiting = [removal for removal in self._waiting if removal[0] > now_ms]
        return ((log_directory, path) for _, log_directory, path in due)

    def remove(self, path: str) -> None:
        if is_deleted(path.rpartition("/")[2]):
            self._filesystem.remove_tree(path)
        elif self._filesystem.exists(path):
            self._filesystem.remove(path)
