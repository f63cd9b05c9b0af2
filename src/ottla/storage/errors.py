"""What goes wrong on a disk.

StorageError  a log directory failed; it goes offline and the others go on
CorruptLog    the bytes of one partition are not what was written; that partition is not served
"""

from ottla.protocol.topics import TopicPartition


class StorageError(Exception):
    """An operation on a log directory failed; what is in it cannot be trusted any more."""

    def __init__(self, directory: str, cause: object) -> None:
        super().__init__(f"log directory {directory} failed: {cause}")
        self.directory = directory
        self.cause = cause


class CorruptLog(Exception):
    """A batch that had been synced is damaged, and whole batches follow it.

    Cutting it off would lose what was acknowledged, so the partition waits for repair.
    """

    def __init__(
        self, topic_partition: TopicPartition, path: str, position: int, offset: int, reason: str
    ) -> None:
        super().__init__(
            f"partition {topic_partition} is corrupt at offset {offset} "
            f"({path}, position {position}): {reason}"
        )
        self.topic_partition = topic_partition
        self.path = path
        self.position = position
        self.offset = offset
