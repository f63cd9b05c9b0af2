"""What DescribeLogDirs tells of a log directory."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Self

from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory


class DirectoryInfo(NamedTuple):
    path: str
    online: bool
    cordoned: bool
    total_bytes: int  # Of the volume; -1 when it is not known.
    usable_bytes: int
    logs: Sequence[PartitionLog]

    @classmethod
    def of(cls, home: LogDirectory, logs: Iterable[PartitionLog]) -> Self:
        total_bytes, usable_bytes = _space(home)
        return cls(
            home.path,
            home.failure is None,
            home.is_cordoned,
            total_bytes,
            usable_bytes,
            [log for log in logs if log.home is home],
        )


def _space(home: LogDirectory) -> tuple[int, int]:
    if home.failure is None:
        try:
            return home.filesystem.space(home.path)
        except OSError as error:
            home.fail(error)
    return -1, -1
