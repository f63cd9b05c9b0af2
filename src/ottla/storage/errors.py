"""Disk errors.

StorageError     a log directory failed; it goes offline and the others carry on
CorruptLog       the bytes of one partition are not what was written; they are not served
KnownDamage      the same, found by an earlier examination
DamagedMetadata  the same, in the cluster metadata: the node cannot start with it
NotCached        the bytes are on disk but not in memory, and the caller did not want to wait
"""


class StorageError(Exception):
    """An operation on a log directory failed; its contents can no longer be trusted."""

    def __init__(self, directory: str, cause: object) -> None:
        super().__init__(f"log directory {directory} failed: {cause}")
        self.directory = directory
        self.cause = cause


class CorruptLog(StorageError):
    """The bytes of a log are not batches; its directory stays online.

    When raised on opening a log: a batch below the recovery point is damaged. It had been synced,
    so truncating it would lose acknowledged records: the partition waits for repair.
    """

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(path.rpartition("/")[0], reason)
        self.args = (f"{path} is corrupt at position {position}, offset {offset}: {reason}",)
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason


class KnownDamage(CorruptLog):
    """The requested offsets are damaged, as an earlier examination found."""


class DamagedMetadata(StorageError):
    """This node's copy of the metadata is not what was written."""


class NotCached(Exception):
    """Retry in a thread that may wait for the disk."""
