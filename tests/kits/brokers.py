"""Brokers of one cluster; the test writes its metadata, and so decides which broker leads.

Node 9 is the quorum and has no partitions. Its controller works as in every cluster: it registers
brokers, accepts in-sync changes, and fences brokers that have ended. It fences merely silent ones
only after hours.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.produce.v13.request import PartitionProduceData
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import Records, i16, i32
from tests.kits.world import World, until
from tests.storage.batches import NOW_MS, produced, read_all, values_of

from ottla.controller.image import TOPIC_RESOURCE, MetadataImage
from ottla.controller.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from ottla.handlers.broker import Broker
from ottla.machine.result import Result
from ottla.network.peers import PeerUnreachable
from ottla.node.node import Node
from ottla.node.quorum import MetadataQuorum
from ottla.protocol.addresses import Address
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import FlushPolicy, Partition
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.storage.manager import LogManager
from ottla.testing.simulator.host import Host
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.simulated_node import DATA, SimulatedNode

T = TypeVar("T")

CONTROLLER = 9
ACKS_ALL = -1
SHORT_LAG_MAX_MS = 200
_HOURS_MS = "36000000"
_CALM = {
    "auto.leader.rebalance.enable": "false",
    "broker.session.timeout.ms": _HOURS_MS,
    "controlled.shutdown.enable": "false",
    "quorum.size": "1",
    "replica.fetch.response.max.bytes": str(1 << 20),
}


class BrokerOfCluster:
    def __init__(self, cluster: "Cluster", simulated: SimulatedNode) -> None:
        self.cluster = cluster
        self.simulated = simulated
        self.id = simulated.node_id

    @property
    def node(self) -> Node:
        assert self.simulated.node is not None, f"{self.simulated} is down"
        return self.simulated.node

    @property
    def served(self) -> Broker:
        """The context of its handlers."""
        assert self.node.broker is not None
        return self.node.broker

    @property
    def disk(self) -> FaultyFilesystem:
        return self.simulated.host.disk

    @property
    def replicas(self) -> ReplicaManager:
        return self.node.replicas

    @property
    def logs(self) -> LogManager:
        return self.served.logs

    def log(self, name: str) -> PartitionLog:
        return self.partition(name).log

    def partition(self, name: str) -> Partition:
        """The partition, whatever its role."""
        for partition in self.replicas.partitions():
            if partition.log.topic_partition == (name, 0):
                return partition
        raise LookupError(name)

    def values(self, name: str, committed: bool = False) -> list[str]:
        log = self.log(name)
        values = [(value or b"").decode() for value in values_of(read_all(log))]
        return values[: log.high_watermark - log.log_start_offset] if committed else values

    def count_requests(self) -> Counter[str]:
        """The requests that it sends to other nodes from now on, by purpose."""
        counts: Counter[str] = Counter()
        peers: Any = self.node._peers
        call_frame = peers.call_frame

        def counted(address: Address, build: object, *, purpose: str, **options: Any) -> Any:
            counts[purpose] += 1
            return call_frame(address, build, purpose=purpose, **options)

        peers.call_frame = counted
        return counts

    @contextmanager
    def held_flushes(self, name: str) -> Iterator[list[Future[object]]]:
        """Flushes of the log wait for the end of the `with` block; yields the waiting ones."""
        executor: Any = self.process.executor
        submit, flush = executor.submit, self.log(name).flush
        held: list[Future[object]] = []

        def hold(work: Callable[..., object], *arguments: object) -> Any:
            if work != flush:
                return submit(work, *arguments)
            held.append(Future())
            return held[-1]

        executor.submit = hold
        yield held
        executor.submit = submit
        for future in held:
            future.set_result(flush())

    @property
    def process(self) -> Process:
        return running(self.simulated)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self.cluster.world.run_in(self.process, coroutine)

    async def produce(self, name: str, *values: str, acks: int = ACKS_ALL) -> None:
        """Returns once it is acknowledged; raises ApiError if it is refused."""
        records, _ = produced(*(value.encode() for value in values), timestamp=NOW_MS)
        data = PartitionProduceData(index=i32(0), records=Records(bytes(records)))
        topic = TopicProduceData(name=name, topic_id=None, partition_data=(data,))
        request = ProduceRequest(
            transactional_id=None,
            acks=i16(acks),
            timeout=milliseconds(3_600_000),
            topic_data=(topic,),
        )
        try:
            response = await self.cluster.world.peers.call(
                self.simulated.address,
                request,
                version=9,
                timeout_ms=3_600_000,
                purpose=f"produce {next(self.cluster.connections)}",
            )
        except PeerUnreachable as error:
            raise ApiError(ErrorCode.network_exception, str(error)) from error
        code = response.responses[0].partition_responses[0].error_code
        if code is not ErrorCode.none:
            raise ApiError(code)


class Cluster:
    def __init__(
        self,
        world: World,
        broker_ids: tuple[int, ...],
        directories: tuple[str, ...],
        overrides: dict[str, str],
    ) -> None:
        self.world = world
        self.connections = itertools.count()
        self._cuts: set[frozenset[int]] = set()
        self._controller = world.add_node(CONTROLLER, overrides)
        self._controller.begins_cluster = True
        self.brokers = {
            broker_id: BrokerOfCluster(
                self,
                world.add_node(
                    broker_id, overrides, join=self._controller, directories=directories
                ),
            )
            for broker_id in broker_ids
        }

    async def start(self) -> None:
        await self.world.start(self._controller)
        await self.world.start(*(broker.simulated for broker in self.brokers.values()))

    async def crash(self, broker_id: int) -> None:
        """Unsynced data is lost; the others notice that it has ended."""
        broker = self.brokers[broker_id]
        broker.simulated.kill()
        broker.disk.crash()
        await until(lambda: self.image.brokers[broker_id].fenced)

    async def restart(self, broker_id: int) -> BrokerOfCluster:
        await self.world.start(self.brokers[broker_id].simulated)
        return self.brokers[broker_id]

    @property
    def image(self) -> MetadataImage:
        """The controller's."""
        assert self._controller.node is not None
        return self._controller.node.image

    def state(self, name: str) -> PartitionRecord:
        state = self.image.partition(name, 0)
        assert state is not None
        return state

    def leader(self, name: str) -> BrokerOfCluster:
        return self.brokers[self.state(name).leader]

    async def write(self, *records: MetadataRecord) -> None:
        """Returns once all brokers that are not cut off have them."""
        assert self._controller.node is not None
        quorum = quorum_of(self._controller.node)

        async def append() -> int:
            assert quorum.leadership is not None
            assert quorum.leadership.runtime is not None
            await quorum.leadership.runtime.submit(lambda *_: Result(None, records))
            return quorum.applier.applied_offset

        offset = await self.world.run_in(running(self._controller), append())
        await until(
            lambda: all(
                quorum_of(broker.node).applier.applied_offset >= offset
                for broker in self.brokers.values()
                if broker.simulated.serving and not self._is_cut(broker.id, CONTROLLER)
            )
        )

    async def create(
        self,
        name: str,
        replicas: Sequence[int] = (1, 2, 3),
        isr: Sequence[int] | None = None,
        **configs: Any,
    ) -> None:
        topic_id = UUID(bytes=name.encode()[-16:].ljust(16, b"."))
        await self.write(
            TopicRecord(name=TopicName(name), topic_id=topic_id),
            *(
                ConfigRecord(
                    resource_type=TOPIC_RESOURCE,
                    resource_name=name,
                    name=key.replace("_", "."),
                    value=value,
                )
                for key, value in configs.items()
            ),
            PartitionRecord(
                partition_id=i32(0),
                topic_id=topic_id,
                replicas=tuple(map(BrokerId, replicas)),
                isr=tuple(map(BrokerId, replicas if isr is None else isr)),
                leader=BrokerId(replicas[0]),
            ),
        )

    async def change(self, name: str, **changes: Any) -> None:
        topic_id = self.image.topics[name].topic_id
        await self.write(PartitionChangeRecord(partition_id=i32(0), topic_id=topic_id, **changes))

    def cut(self, broker_id: int, *others: int) -> None:
        """From these nodes, or from all but the test's machine; waiting requests get no answer."""
        for other in others or (*self.brokers, CONTROLLER):
            if other != broker_id:
                self._cuts.add(frozenset((broker_id, other)))
        self._for_each_cut(self.world.network.cut)

    def heal(self) -> None:
        self._for_each_cut(self.world.network.mend)
        self._cuts.clear()

    def _for_each_cut(self, change: Callable[[Host, Host], None]) -> None:
        for broker_id, other in self._cuts:
            hosts = self.world.nodes[broker_id].host, self.world.nodes[other].host
            change(*hosts)
            change(*reversed(hosts))

    def _is_cut(self, broker_id: int, other: int) -> bool:
        return frozenset((broker_id, other)) in self._cuts


def quorum_of(node: Node) -> MetadataQuorum:
    assert node.quorum is not None
    return node.quorum


def running(simulated: SimulatedNode) -> Process:
    assert simulated.host.process is not None, f"{simulated} is down"
    return simulated.host.process


def run(
    test: Callable[[Cluster], Coroutine[Any, Any, object]],
    *,
    broker_ids: tuple[int, ...] = (1, 2, 3),
    directories: tuple[str, ...] = (DATA,),
    policy: FlushPolicy = FlushPolicy.ACK,
    seed: int = 0,
    **configs: Any,
) -> None:
    """`configs` are the brokers' configs, with underscores for dots."""
    overrides = {key.replace("_", "."): str(value) for key, value in configs.items()}
    world = World(seed)
    cluster = Cluster(
        world, broker_ids, directories, {**_CALM, "flush.policy": policy.value, **overrides}
    )

    async def whole() -> None:
        await cluster.start()
        await test(cluster)

    try:
        world.run(whole())
    finally:
        world.close()
