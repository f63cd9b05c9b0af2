"""A log manager on a disk, for tests of what survives stops and crashes."""

from uuid import UUID

from ottla.protocol.config import ConfigValues
from ottla.protocol.topics import TopicPartition
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

from .batches import NOW_MS

TOPIC_ID = UUID(int=7)
OTHER_ID = UUID(int=8)
ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=300, file_delete_delay_ms=1000)


class Broker:
    """A log manager on a disk, which can be stopped, crashed and restarted."""

    def __init__(
        self, *directories: str, filesystem: FaultyFilesystem | None = None, node_id: int = 1
    ) -> None:
        self.filesystem = filesystem or FaultyFilesystem()
        self.directories = directories or ("/data",)
        self.node_id = node_id
        self.now_ms = NOW_MS
        self.failures: list[StorageError] = []
        self.start()

    def start(self, cluster_id: str | None = None) -> None:
        self.logs = LogManager(
            self.directories,
            self.filesystem,
            lambda: self.now_ms,
            broker=ConfigValues({"num.recovery.threads.per.data.dir": 1}),
            config_of_topic=lambda _: CONFIG,
            on_failure=self.failures.append,
        )
        self.logs.start(self.node_id, cluster_id)

    def restart(self) -> None:
        self.logs.stop()
        self.start()

    def crash(self) -> None:
        self.filesystem.crash()
        self.start()

    def log(self, topic_partition: TopicPartition = ORDERS) -> PartitionLog:
        """The log of one of its partitions."""
        log = self.logs.get(topic_partition)
        assert log is not None
        return log

    def create(
        self, topic_partition: TopicPartition = ORDERS, topic_id: UUID = TOPIC_ID
    ) -> PartitionLog:
        return self.logs.create(topic_partition, topic_id, CONFIG)
