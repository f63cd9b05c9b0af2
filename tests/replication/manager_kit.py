"""A replica manager of broker 1 that is fed with metadata by hand; the disk is in memory."""

from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    BrokerEndpoint,
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
from ottla.replication.partition import FlushPolicy
from ottla.runtime.clock import ManualClock
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

ME = 1
LAG_MAX_MS = 1000


def topic_id(name):
    return UUID(bytes=name.encode()[-16:].ljust(16, b"."))


class ManagerKit:
    """`heard` has what the manager told: (what, partition, ...)."""

    def __init__(self, disk=None, directories=("/data",)):
        self.disk = disk or FaultyFilesystem(seed=3)
        self.clock = ManualClock()
        self.heard = []
        self.image = MetadataImage()
        self.log_config = LogConfig()
        self.logs = LogManager(directories, self.disk, self.clock.now_ms)
        self.logs.start(ME)
        self.replicas = ReplicaManager(
            ReplicaSettings(ME, FlushPolicy.OS, LAG_MAX_MS),
            self.logs,
            lambda topic: self.log_config,
            None,
            FetchSessions(10, 1),
            self.clock,
        )
        self.replicas.listen(LeadershipListener(self._tell("elected"), self._tell("resigning")))
        self.replicas.listen_to_following(
            FollowingListener(
                self._tell("following"), self._tell("following ended"), self._tell("isr change")
            )
        )

    def listen_to_roles(self):
        """Into `heard` as well."""
        listener = RoleListener(self._tell("new leader"), self._tell("new isr"))
        self.replicas.listen_to_roles(listener)

    def take_heard(self):
        heard, self.heard = self.heard, []
        return heard

    def record(self, record):
        self.image.replay(record)
        self.replicas.on_record(record, self.image)

    def create(self, name, replicas=(1, 2, 3), isr=None, leader=None, index=0):
        if name not in self.image.topics:
            self.record(TopicRecord(name=name, topic_id=topic_id(name)))
        self.record(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id(name),
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=replicas[0] if leader is None else leader,
            )
        )

    def change(self, name, index=0, **changes):
        self.record(PartitionChangeRecord(partition_id=index, topic_id=topic_id(name), **changes))

    def remove(self, name):
        self.record(RemoveTopicRecord(topic_id=topic_id(name)))

    def register(self, *broker_ids, fenced=False):
        for broker_id in broker_ids:
            self.record(
                RegisterBrokerRecord(
                    broker_id=broker_id,
                    incarnation_id=UUID(int=broker_id),
                    broker_epoch=70 + broker_id,
                    end_points=(
                        BrokerEndpoint(name="PLAINTEXT", host="localhost", port=broker_id),
                    ),
                    fenced=fenced,
                )
            )

    def partition(self, name, index=0):
        """Whatever its role is."""
        for partition in self.replicas.partitions():
            if partition.log.topic_partition == (name, index):
                return partition
        return None

    def _tell(self, what):
        def hear(partition, *more):
            self.heard.append((what, str(partition.log.topic_partition), *more))

        return hear
