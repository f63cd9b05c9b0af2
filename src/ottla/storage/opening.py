"""Opens the log of a partition: recovers what is on disk and loads it."""

from ottla.storage.loading import load_log
from ottla.storage.log import PartitionLog
from ottla.storage.log_directory import LogDirectory
from ottla.storage.recovery import LoadRequest


def open_partition_log(log_directory: LogDirectory, request: LoadRequest) -> PartitionLog:
    """Load the log in the requested directory, or create an empty one there.

    After a clean shutdown nothing is checked. Otherwise the batches from the recovery point's
    segment on are checked, or all of them if `checks_all`: a tail damaged past the recovery point
    is truncated; damage before it is skipped or raises CorruptLog. If `writes_survived`, only the
    last write can be torn, and damage before it is skipped as well.
    """
    return PartitionLog(log_directory, request, load_log(log_directory, request))
