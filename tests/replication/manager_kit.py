"""Broker 1's replica manager, fed with metadata by hand; the disk is in memory."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i64, u16
from tests.kits.manual_clock import ManualClock

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    BrokerEndpoint,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.manager import (
    FollowingListener,
    LeadershipListener,
    ReplicaManager,
    ReplicaSettings,
    RoleListener,
)
from ottla.replication.partition import FlushPolicy, Partition
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

ME = 1
LAG_MAX_MS = 1000

Heard = tuple[str | int | tuple[int, ...], ...]


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode()[-16:].ljust(16, b"."))


class NoFlusher:
    """For partitions whose log is synced by the operating system."""

    def request(self, log: PartitionLog, callback: Callable[[], None]) -> None:
        raise AssertionError(f"{log.topic_partition} is not to be synced")


class ManagerKit:
    """`heard` has the manager's notifications: (what, partition, ...)."""

    def __init__(
        self, disk: FaultyFilesystem | None = None, directories: tuple[str, ...] = ("/data",)
    ) -> None:
        self.disk = disk or FaultyFilesystem(seed=3)
        self.clock = ManualClock()
        self.heard: list[Heard] = []
        self.image = MetadataImage()
        self.log_config = LogConfig()
        self.logs = LogManager(directories, self.disk, self.clock.now_ms)
        self.logs.start(ME)
        self.replicas = ReplicaManager(
            ReplicaSettings(ME, FlushPolicy.OS, LAG_MAX_MS),
            self.logs,
            lambda topic: self.log_config,
            NoFlusher(),
            FetchSessions(10, 1),
            self.clock,
        )
        self.replicas.leadership_listeners.append(
            LeadershipListener(self._tell("elected"), self._tell("resigning"))
        )
        self.replicas.following_listeners.append(
            FollowingListener(
                self._tell("following"), self._tell("following ended"), self._tell("isr change")
            )
        )

    def listen_to_roles(self) -> None:
        """Also recorded in `heard`."""
        listener = RoleListener(self._tell("new leader"), self._tell("new isr"))
        self.replicas.role_listeners.append(listener)

    def take_heard(self) -> list[Heard]:
        heard, self.heard = self.heard, []
        return heard

    def record(self, record: MetadataRecord) -> None:
        self.image.replay(record)
        self.replicas.on_record(record, self.image)

    def create(
        self,
        name: str,
        replicas: tuple[int, ...] = (1, 2, 3),
        isr: tuple[int, ...] | None = None,
        leader: int | None = None,
        index: int = 0,
    ) -> None:
        if name not in self.image.topics:
            self.record(TopicRecord(name=TopicName(name), topic_id=topic_id(name)))
        self.record(
            PartitionRecord(
                partition_id=i32(index),
                topic_id=topic_id(name),
                replicas=tuple(map(BrokerId, replicas)),
                isr=tuple(map(BrokerId, replicas if isr is None else isr)),
                leader=BrokerId(replicas[0] if leader is None else leader),
            )
        )

    def change(self, name: str, index: int = 0, **changes: Any) -> None:
        self.record(
            PartitionChangeRecord(partition_id=i32(index), topic_id=topic_id(name), **changes)
        )

    def remove(self, name: str) -> None:
        self.record(RemoveTopicRecord(topic_id=topic_id(name)))

    def register(self, *broker_ids: int, fenced: bool = False) -> None:
        for broker_id in broker_ids:
            self.record(
                RegisterBrokerRecord(
                    broker_id=BrokerId(broker_id),
                    incarnation_id=UUID(int=broker_id),
                    broker_epoch=i64(70 + broker_id),
                    end_points=(
                        BrokerEndpoint(name="PLAINTEXT", host="localhost", port=u16(broker_id)),
                    ),
                    fenced=fenced,
                )
            )

    def partition(self, name: str, index: int = 0) -> Partition:
        """The partition, whatever its role."""
        partition = self.find_partition(name, index)
        assert partition is not None
        return partition

    def find_partition(self, name: str, index: int = 0) -> Partition | None:
        for partition in self.replicas.partitions():
            if partition.log.topic_partition == (name, index):
                return partition
        return None

    def _tell(self, what: str) -> Callable[..., None]:
        def hear(partition: Partition, *more: int | tuple[int, ...] | str) -> None:
            self.heard.append((what, str(partition.log.topic_partition), *more))

        return hear
