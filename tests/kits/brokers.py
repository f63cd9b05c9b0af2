"""Brokers of one cluster whose metadata the test writes, so that it decides who leads what.

Node 9 is the quorum and has no partitions. Its controller does what it does in every cluster: it
registers brokers, takes changes of in-sync sets, and fences brokers that have ended. It waits for
hours before it fences one that is only silent.
"""

import itertools
from collections import Counter
from concurrent.futures import Future
from contextlib import contextmanager
from uuid import UUID

from kio.schema.produce.v13.request import PartitionProduceData
from tests.kits.world import World, until
from tests.storage.batches import NOW_MS, produced, read_all, values_of

from ottla.controller.image import TOPIC_RESOURCE
from ottla.controller.records import (
    ConfigRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from ottla.machine.result import Result
from ottla.network.peers import PeerUnreachable
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.produce import ProduceRequest, TopicProduceData
from ottla.protocol.times import milliseconds
from ottla.replication.partition import FlushPolicy
from ottla.testing.simulator.simulated_node import DATA

CONTROLLER = 9
ACKS_ALL = -1
PRODUCE = 0
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
    def __init__(self, cluster, simulated):
        self.cluster = cluster
        self.simulated = simulated
        self.id = simulated.node_id

    @property
    def node(self):
        assert self.simulated.node is not None, f"{self.simulated} is down"
        return self.simulated.node

    @property
    def served(self):
        """What its handlers work with."""
        return self.node.broker

    @property
    def disk(self):
        return self.simulated.host.disk

    @property
    def replicas(self):
        return self.node.replicas

    @property
    def logs(self):
        return self.served.logs

    def log(self, name):
        return self.partition(name).log

    def partition(self, name):
        """Whatever its role is."""
        for partition in self.replicas.partitions():
            if partition.log.topic_partition == (name, 0):
                return partition
        raise LookupError(name)

    def values(self, name, committed=False):
        log = self.log(name)
        values = [value.decode() for value in values_of(read_all(log))]
        return values[: log.high_watermark - log.log_start_offset] if committed else values

    def count_requests(self):
        """That it sends to other nodes from now on, by their purpose."""
        counts, peers = Counter(), self.node._peers
        call_frame = peers.call_frame

        def counted(address, build, *, purpose, **options):
            counts[purpose] += 1
            return call_frame(address, build, purpose=purpose, **options)

        peers.call_frame = counted
        return counts

    @contextmanager
    def held_flushes(self, name):
        """The disk takes nothing of a log until the end; those that were begun are told."""
        executor, flush = self.simulated.host.process.executor, self.log(name).flush
        submit, held = executor.submit, []

        def hold(work, *arguments):
            if work != flush:
                return submit(work, *arguments)
            held.append(Future())
            return held[-1]

        executor.submit = hold
        yield held
        executor.submit = submit
        for future in held:
            future.set_result(flush())

    async def run(self, coroutine):
        return await self.cluster.world.run_in(self.simulated.host.process, coroutine)

    async def produce(self, name, *values, acks=ACKS_ALL):
        """Returns when it is acknowledged; ApiError if it was refused."""
        records, _ = produced(*(value.encode() for value in values), timestamp=NOW_MS)
        data = PartitionProduceData(index=0, records=bytes(records))
        topic = TopicProduceData(name=name, topic_id=None, partition_data=(data,))
        request = ProduceRequest(
            transactional_id=None, acks=acks, timeout=milliseconds(3_600_000), topic_data=(topic,)
        )
        try:
            response = await self.cluster.world.peers.call(
                self.simulated.address,
                PRODUCE,
                9,
                request,
                timeout_ms=3_600_000,
                purpose=f"produce {next(self.cluster.connections)}",
            )
        except PeerUnreachable as error:
            raise ApiError(ErrorCode.network_exception, str(error)) from error
        code = response.responses[0].partition_responses[0].error_code
        if code is not ErrorCode.none:
            raise ApiError(code)


class Cluster:
    def __init__(self, world, broker_ids, directories, overrides):
        self.world = world
        self.connections = itertools.count()
        self._cuts = set()
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

    async def start(self):
        await self.world.start(self._controller)
        await self.world.start(*(broker.simulated for broker in self.brokers.values()))

    async def crash(self, broker_id):
        """What was not synced is lost; the others see that it has ended."""
        broker = self.brokers[broker_id]
        broker.simulated.kill()
        broker.disk.crash()
        await until(lambda: self.image.brokers[broker_id].fenced)

    async def restart(self, broker_id):
        await self.world.start(self.brokers[broker_id].simulated)
        return self.brokers[broker_id]

    @property
    def image(self):
        """The controller's."""
        return self._controller.node.image

    def state(self, name):
        return self.image.partition(name, 0)

    def leader(self, name):
        return self.brokers[self.state(name).leader]

    async def write(self, *records):
        """Returns when all brokers have them that are not cut off."""
        quorum = self._controller.node.quorum

        async def append():
            await quorum._active.runtime.submit(lambda *_: Result(None, records))
            return quorum.applier.applied_offset

        offset = await self.world.run_in(self._controller.host.process, append())
        await until(
            lambda: all(
                broker.node.quorum.applier.applied_offset >= offset
                for broker in self.brokers.values()
                if broker.simulated.serving and not self._is_cut(broker.id, CONTROLLER)
            )
        )

    async def create(self, name, replicas=(1, 2, 3), isr=None, **configs):
        topic_id = UUID(bytes=name.encode()[-16:].ljust(16, b"."))
        await self.write(
            TopicRecord(name=name, topic_id=topic_id),
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
                partition_id=0,
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas if isr is None else isr,
                leader=replicas[0],
            ),
        )

    async def change(self, name, **changes):
        topic_id = self.image.topics[name].topic_id
        await self.write(PartitionChangeRecord(partition_id=0, topic_id=topic_id, **changes))

    def cut(self, broker_id, *others):
        """From these nodes, or all but the test's machine; requests that wait get no answer."""
        for other in others or (*self.brokers, CONTROLLER):
            if other != broker_id:
                self._cuts.add(frozenset((broker_id, other)))
        self._for_each_cut(self.world.network.cut)

    def heal(self):
        self._for_each_cut(self.world.network.mend)
        self._cuts.clear()

    def _for_each_cut(self, change):
        for one, other in self._cuts:
            hosts = self.world.nodes[one].host, self.world.nodes[other].host
            change(*hosts)
            change(*reversed(hosts))

    def _is_cut(self, one, other):
        return frozenset((one, other)) in self._cuts


def run(
    test,
    *,
    broker_ids=(1, 2, 3),
    directories=(DATA,),
    policy=FlushPolicy.ACK,
    seed=0,
    **configs,
):
    """`configs` are those of the brokers, with underscores for dots."""
    overrides = {key.replace("_", "."): str(value) for key, value in configs.items()}
    world = World(seed)
    cluster = Cluster(
        world, broker_ids, directories, {**_CALM, "flush.policy": policy.value, **overrides}
    )

    async def whole():
        await cluster.start()
        await test(cluster)

    try:
        world.run(whole())
    finally:
        world.close()
