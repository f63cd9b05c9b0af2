"""What DescribeLogDirs reports about a log directory."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.log_move import LogMove


class DirectoryInfo(NamedTuple):
    path: str
    online: bool
    cordoned: bool
    total_bytes: int  # Of the volume; -1 if unknown.
    usable_bytes: int
    logs: Sequence[PartitionLog]
    moves: Sequence[LogMove]  # Replicas moving in from other directories.

    @classmethod
    def of(
        cls, log_directory: LogDirectory, logs: Iterable[PartitionLog], moves: Iterable[LogMove]
    ) -> Self:
        total_bytes, usable_bytes = _space(log_directory)
        return cls(
            log_directory.path,
            log_directory.failure is None,
            log_directory.is_cordoned,
            total_bytes,
            usable_bytes,
            [log for log in logs if log.log_directory is log_directory],
            [move for move in moves if move.future.log_directory is log_directory],
        )


def _space(log_directory: LogDirectory) -> tuple[int, int]:
    if log_directory.failure is None:
        try:
            return log_directory.filesystem.space(log_directory.path)
        except OSError as error:
            log_directory.on_error(error)
    return -1, -1
