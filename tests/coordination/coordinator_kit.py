"""A broker that leads and resigns as the test says, with a machine of keys and values."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.coordination.coordinators import Coordinators
from ottla.machine.result import Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.manager import ReplicaManager, ReplicaSettings
from ottla.replication.partition import FlushPolicy
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flusher
from ottla.runtime.process import Process
from ottla.runtime.supervisor import Supervisor
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.manager import LogManager

TOPIC = "__consumer_offsets"
TOPIC_ID = UUID(int=77)
ME, OTHER = 1, 2


class PairCodec:
    """A record is a pair of a key and a value."""

    def encode(self, record):
        key, value = record
        return key.encode(), value.encode()

    def decode(self, key, value):
        if value == b"bad":
            raise ValueError("not a pair")
        return key.decode(), value.decode()


class Pairs:
    """Values by key; those of a transaction count when it is committed."""

    def __init__(self, timers):
        self.timers = timers
        self.values = {}
        self.pending = {}
        self.replayed = []

    def replay(self, record, timestamp_ms):
        self.replayed.append(record)
        if isinstance(record, Transactional):
            self.pending.setdefault(record.producer_id, []).append(record.record)
        elif isinstance(record, TransactionMarker):
            pending = self.pending.pop(record.producer_id, [])
            if record.committed:
                self.values.update(pending)
        else:
            self.values.update([record])

    def snapshot(self):
        return self.values.items()

    def on_loaded(self, now_ms):
        self.loaded = True

    def put(self, *pairs):
        return Result(len(self.values), pairs)

    def get(self, key):
        return Result(self.values.get(key))


class BrokerKit:
    """Use it inside a running loop; the disk survives `restart`."""

    def __init__(self, disk=None, policy=FlushPolicy.ACK):
        self.loop = asyncio.get_running_loop()
        self.disk = disk or FaultyFilesystem(seed=5)
        self.executor = ThreadPoolExecutor(2)
        self.failures = []
        self.image = MetadataImage()
        self.logs = LogManager(["/data"], self.disk, SystemClock().now_ms)
        self.logs.start(ME)
        self.supervisor = Supervisor(self.loop, self.failures.append)
        self.replicas = ReplicaManager(
            ReplicaSettings(ME, policy, 30_000),
            self.logs,
            lambda topic: LogConfig(cleanup_policy=("compact",)),
            Flusher(self.loop, self.executor, self._on_flush_failure),
            FetchSessions(10, 1),
            SystemClock(),
        )
        self.coordinators = Coordinators(
            TOPIC,
            self.image,
            lambda key, count: int(key) % count,
            Pairs,
            PairCodec,
            Process(
                loop=self.loop,
                clock=SystemClock(),
                executor=self.executor,
                supervisor=self.supervisor,
            ),
        )
        self.replicas.listen(self.coordinators.leadership_listener)

    def _on_flush_failure(self, log, error):
        self.replicas.on_flush_failure(log, error)

    def record(self, record):
        self.image.replay(record)
        self.replicas.on_record(record, self.image)

    def create_topic(self, partitions=1, leader=ME):
        self.record(TopicRecord(name=TOPIC, topic_id=TOPIC_ID))
        for index in range(partitions):
            self.record(
                PartitionRecord(
                    partition_id=index,
                    topic_id=TOPIC_ID,
                    replicas=(ME, OTHER),
                    isr=(ME,),
                    leader=leader,
                )
            )

    def elect(self, leader, index=0):
        self.record(PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, leader=leader))

    def delete_topic(self):
        self.record(RemoveTopicRecord(topic_id=TOPIC_ID))

    def partition(self, index=0):
        return self.replicas.find(TOPIC, index)

    def submit(self, operation, key="0"):
        return self.coordinators.find(key).submit(operation)

    def put(self, *pairs):
        return self.submit(lambda machine, now_ms: machine.put(*pairs))

    def get(self, key):
        return self.submit(lambda machine, now_ms: machine.get(key))

    async def loaded(self, key="0"):
        """The machine of the key's coordinator, once it is loaded."""
        while True:
            try:
                return self.coordinators.find(key).machine
            except ApiError:
                await asyncio.sleep(0)

    async def close(self):
        await self.supervisor.stop()
        self.executor.shutdown()


def run(test):
    """Run an async test with a broker."""

    async def whole():
        kit = BrokerKit()
        try:
            await test(kit)
        finally:
            await kit.close()
        assert kit.failures == []

    asyncio.run(whole())
