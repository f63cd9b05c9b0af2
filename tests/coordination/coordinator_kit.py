"""A broker that leads and resigns on command, with a key-value machine."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32

from ottla.controller.image import MetadataImage
from ottla.controller.records import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from ottla.coordination.coordinators import Coordinators
from ottla.machine.contract import Timers
from ottla.machine.result import Result
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.errors import ApiError
from ottla.replication.fetch_sessions import FetchSessions
from ottla.replication.manager import ReplicaManager, ReplicaSettings
from ottla.replication.partition import FlushPolicy, Partition
from ottla.runtime.clock import SystemClock
from ottla.runtime.flusher import Flushable, Flusher
from ottla.runtime.process import Process
from ottla.runtime.supervisor import Supervisor
from ottla.storage.config import LogConfig
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager

TOPIC = TopicName("__consumer_offsets")
TOPIC_ID = UUID(int=77)
ME, OTHER = BrokerId(1), BrokerId(2)


class PairCodec:
    """A record is a pair of a key and a value."""

    def encode(self, record: object) -> tuple[bytes, bytes]:
        assert isinstance(record, tuple)
        key, value = record
        return key.encode(), value.encode()

    def decode(self, key: bytes | None, value: bytes | None) -> tuple[str, str]:
        assert key is not None
        assert value is not None
        if value == b"bad":
            raise ValueError("not a pair")
        return key.decode(), value.decode()


class Pairs:
    """Values by key; those of a transaction count once it is committed."""

    def __init__(self, timers: Timers) -> None:
        self.timers = timers
        self.values: dict[str, str] = {}
        self.pending: dict[int, list[Any]] = {}
        self.replayed: list[object] = []

    def replay(self, record: object, timestamp_ms: int) -> None:
        self.replayed.append(record)
        if isinstance(record, Transactional):
            self.pending.setdefault(record.producer_id, []).append(record.record)
        elif isinstance(record, TransactionMarker):
            pending = self.pending.pop(record.producer_id, [])
            if record.committed:
                self.values.update(pending)
        else:
            assert isinstance(record, tuple)
            self.values.update([record])

    def snapshot(self) -> Iterable[tuple[str, str]]:
        return self.values.items()

    def on_loaded(self, now_ms: int) -> None:
        self.loaded = True

    def put(self, *pairs: tuple[str, str]) -> Result[Any]:
        return Result(len(self.values), pairs)

    def get(self, key: str) -> Result[Any]:
        return Result(self.values.get(key))


class BrokerKit:
    """Use it inside a running event loop; the disk survives `restart`."""

    def __init__(
        self, disk: FaultyFilesystem | None = None, policy: FlushPolicy = FlushPolicy.ACK
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.disk = disk or FaultyFilesystem(seed=5)
        self.executor = ThreadPoolExecutor(2)
        self.failures: list[BaseException] = []
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
            topic=TOPIC,
            catalog=self.image,
            create_machine=Pairs,
            create_codec=PairCodec,
            process=Process(
                loop=self.loop,
                clock=SystemClock(),
                executor=self.executor,
                supervisor=self.supervisor,
            ),
        )
        self.replicas.leadership_listeners.append(self.coordinators.leadership_listener)

    def _on_flush_failure(self, log: Flushable, error: BaseException) -> None:
        assert isinstance(log, PartitionLog)
        self.replicas.on_flush_failure(log, error)

    def record(
        self, record: TopicRecord | PartitionRecord | PartitionChangeRecord | RemoveTopicRecord
    ) -> None:
        self.image.replay(record)
        self.replicas.on_record(record, self.image)

    def create_topic(self, partitions: int = 1, leader: int = ME) -> None:
        self.record(TopicRecord(name=TOPIC, topic_id=TOPIC_ID))
        for index in range(partitions):
            self.record(
                PartitionRecord(
                    partition_id=i32(index),
                    topic_id=TOPIC_ID,
                    replicas=(ME, OTHER),
                    isr=(ME,),
                    leader=BrokerId(leader),
                )
            )

    def elect(self, leader: int, index: int = 0) -> None:
        self.record(
            PartitionChangeRecord(
                partition_id=i32(index), topic_id=TOPIC_ID, leader=BrokerId(leader)
            )
        )

    def delete_topic(self) -> None:
        self.record(RemoveTopicRecord(topic_id=TOPIC_ID))

    def partition(self, index: int = 0) -> Partition:
        return self.replicas.find(TOPIC, index)

    def submit(
        self, operation: Callable[[Pairs, int], Result[Any]], key: str = "0"
    ) -> asyncio.Future[Any]:
        return self.coordinators.find(key).submit(operation)

    def put(self, *pairs: tuple[str, str]) -> asyncio.Future[Any]:
        return self.submit(lambda machine, now_ms: machine.put(*pairs))

    def get(self, key: str) -> asyncio.Future[Any]:
        return self.submit(lambda machine, now_ms: machine.get(key))

    async def loaded(self, key: str = "0") -> Pairs:
        """The machine of the key's coordinator, once loaded."""
        while True:
            try:
                return self.coordinators.find(key).machine
            except ApiError:
                await asyncio.sleep(0)

    async def close(self) -> None:
        await self.supervisor.stop()
        self.executor.shutdown()


def run(test: Callable[[BrokerKit], Awaitable[None]]) -> None:
    """Run an async test with a broker."""

    async def whole() -> None:
        kit = BrokerKit()
        try:
            await test(kit)
        finally:
            await kit.close()
        assert kit.failures == []

    asyncio.run(whole())
