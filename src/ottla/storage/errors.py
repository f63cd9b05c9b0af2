"""What goes wrong on a disk.

StorageError     a log directory failed; it goes offline and the others go on
CorruptLog       the bytes of one partition are not what was written; they are not served
KnownDamage      the same, of what was examined before
DamagedMetadata  the same, of the cluster's metadata: the node cannot start with it
NotCached        the bytes are on the disk but not in memory, and the caller did not want to wait
"""


class StorageError(Exception):
    """An operation on a log directory failed; what is in it cannot be trusted any more."""

    def __init__(self, directory: str, cause: object) -> None:
        super().__init__(f"log directory {directory} failed: {cause}")
        self.directory = directory
        self.cause = cause


class CorruptLog(StorageError):
    """The bytes of a log are not batches; its directory stays online.

    When a log is opened: a batch below the recovery point is damaged. It had been synced, so
    cutting it off would lose what was acknowledged: the partition waits for repair.
    """

    def __init__(self, path: str, position: int, offset: int, reason: str) -> None:
        super().__init__(path.rpartition("/")[0], reason)
        self.args = (f"{path} is corrupt at position {position}, offset {offset}: {reason}",)
        self.path = path
        self.position = position
        self.offset = offset
        self.reason = reason


class KnownDamage(CorruptLog):
    """The offsets that are asked for are damaged here, as an examination has found before."""


class DamagedMetadata(StorageError):
    """This node's replica of the metadata is not what was written."""


class NotCached(Exception):
    """Ask again in a thread that may wait for the disk."""
