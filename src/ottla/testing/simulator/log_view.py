"""The logs of a node, as checkers look at them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from ottla.node.node import Node
from ottla.protocol.errors import ApiError
from ottla.protocol.topics import CLUSTER_METADATA_TOPIC, TopicPartition
from ottla.raft.states import Role
from ottla.records.batch import BatchHeader, iterate_headers
from ottla.replication.partition import Partition
from ottla.runtime.raft_driver import RaftDriver
from ottla.storage.errors import StorageError

READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class LogView:
    partition: TopicPartition
    topic_id: UUID | None
    replica: object  # One life of it: a quorum that trouble with the disk ended begins anew.
    is_leader: bool
    leader_epoch: int
    start_offset: int
    high_watermark: int
    end_offset: int
    compacted: bool
    read: Callable[[int], tuple[bytes, int] | None]  # Committed batches from an offset on.

    def committed(self, start_offset: int) -> Iterator[BatchHeader]:
        """The batches from an offset on; none that cannot be read now."""
        offset = max(start_offset, self.start_offset)
        while offset < self.high_watermark:
            try:
                found = self.read(offset)
            except (ApiError, StorageError, OSError):
                return
            if found is None:
                return
            data, offset = found
            for _, header in iterate_headers(data):
                if header.base_offset >= start_offset:
                    yield header


def logs_of(node: Node) -> Iterator[LogView]:
    quorum = node.quorum
    if quorum is not None and quorum.driver.core is not None:
        yield _metadata_log(quorum.driver)
    for partition in node.replicas.partitions():
        yield _partition_log(partition)


def _metadata_log(driver: RaftDriver) -> LogView:
    core, log = driver.core, driver.log
    assert core is not None
    high_watermark = log.high_watermark

    def read(offset: int) -> tuple[bytes, int] | None:
        return log.read(offset, READ_BYTES, high_watermark)

    return LogView(
        TopicPartition(CLUSTER_METADATA_TOPIC, 0),
        None,
        core,
        core.state.role is Role.LEADER,
        core.state.epoch,
        log.start_offset,
        high_watermark,
        log.end_offset,
        False,
        read,
    )


def _partition_log(partition: Partition) -> LogView:
    log = partition.log
    high_watermark = log.high_watermark

    def read(offset: int) -> tuple[bytes, int] | None:
        found = log.read(offset, READ_BYTES, high_watermark)
        return None if found is None else (found.read(), found.next_offset)

    return LogView(
        log.topic_partition,
        log.topic_id,
        log,
        partition.is_leader,
        partition.leader_epoch,
        log.log_start_offset,
        high_watermark,
        log.log_end_offset,
        log.config.compact,
        read,
    )
