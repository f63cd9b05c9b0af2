"""Files of deleted logs and segments, kept for a while because readers may still hold them."""

from collections.abc import Callable
from functools import partial

from ottla.storage.log_directories import LogDirectories
from ottla.storage.log_directory import LogDirectory
from ottla.storage.partition_names import is_deleted


class Removals:
    def __init__(self, log_directories: LogDirectories, clock_ms: Callable[[], int]) -> None:
        self._log_directories = log_directories
        self._clock_ms = clock_ms
        self._waiting: list[tuple[int, LogDirectory, str]] = []  # Due time, log directory, path.

    def remove_due(self) -> None:
        """Remove the discarded files whose delay has passed."""
        now_ms = self._clock_ms()
        for log_directory in self._log_directories:
            while log_directory.discarded:
                path, delay_ms = log_directory.discarded.popleft()
                self._waiting.append((now_ms + delay_ms, log_directory, path))
        due = [removal for removal in self._waiting if removal[0] <= now_ms]
        self._waiting = [removal for removal in self._waiting if removal[0] > now_ms]
        for _, log_directory, path in due:
            self._log_directories.attempt(log_directory, partial(_remove, path))


def _remove(path: str, log_directory: LogDirectory) -> None:
    filesystem = log_directory.filesystem
    if is_deleted(path.rpartition("/")[2]):
        filesystem.remove_tree(path)
    elif filesystem.exists(path):
        filesystem.remove(path)
