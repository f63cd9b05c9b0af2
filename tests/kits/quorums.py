"""Metadata quorums of real nodes, whose tests change one value of the metadata.

Node 1 starts the cluster and the others join it; observers get OBSERVES.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest, Listener
from kio.schema.describe_quorum.v2 import request as describing
from kio.schema.describe_quorum.v2.response import PartitionData
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import i8, i32, u16
from tests.kits.world import World, until

from ottla.controller.image import BROKER_RESOURCE
from ottla.node.node import Node
from ottla.node.quorum import MetadataQuorum
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.raft.node import RaftNode
from ottla.runtime.raft_log import metadata_directory
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.testing.simulator.host import Host
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.simulated_node import DATA, SimulatedNode

METADATA = metadata_directory(DATA)
OBSERVES = {"quorum_size": 1}

T = TypeVar("T")


def set_partitions(count: int) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="num.partitions", config_operation=i8(0), value=str(count))
    resource = AlterConfigsResource(
        resource_type=i8(BROKER_RESOURCE), resource_name="", configs=(config,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


class QuorumNode:
    """A node, across restarts."""

    def __init__(self, world: World, node_id: int, join: SimulatedNode | None) -> None:
        self.id = node_id
        self.configs: dict[str, str] = {}  # For its next start.
        self.simulated = world.add_node(node_id, self.configs, join=join)
        self._world = world

    @property
    def disk(self) -> FaultyFilesystem:
        return self.simulated.host.disk

    @property
    def runs(self) -> bool:
        return self.simulated.host.process is not None

    @property
    def process(self) -> Process:
        assert self.simulated.host.process is not None, f"{self.simulated} is down"
        return self.simulated.host.process

    @property
    def node(self) -> Node:
        assert self.simulated.node is not None, f"{self.simulated} is down"
        return self.simulated.node

    @property
    def quorum(self) -> MetadataQuorum:
        assert self.node.quorum is not None
        return self.node.quorum

    @property
    def core(self) -> RaftNode:
        assert self.quorum.driver.core is not None
        return self.quorum.driver.core

    @property
    def leads(self) -> bool:
        return self.quorum.leadership.is_here

    @property
    def partitions(self) -> str | None:
        return self.node.image.default_broker_configs().get("num.partitions")

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await self._world.run_in(self.process, coroutine)

    async def call(self, request: object, timeout_ms: int | None = None) -> Any:
        return await self.run(self.quorum.controller.call(request, timeout_ms=timeout_ms))

    async def set(self, count: int) -> None:
        response = await self.call(set_partitions(count))
        assert response.responses[0].error_code == 0, response

    async def add_voter(self, *, ack_when_committed: bool) -> None:
        identity = self.quorum.driver.identity
        (endpoint,) = identity.endpoints
        request = AddRaftVoterRequest(
            cluster_id=identity.cluster_id,
            timeout=milliseconds(10_000),
            voter_id=i32(self.id),
            voter_directory_id=identity.key.directory_id,
            listeners=(Listener(name=endpoint.name, host=endpoint.host, port=u16(endpoint.port)),),
            ack_when_committed=ack_when_committed,
        )
        response = await self.call(request)
        assert response.error_code is ErrorCode.none, response

    async def describe(self) -> PartitionData:
        partition = describing.PartitionData(partition_index=i32(0))
        topic = describing.TopicData(
            topic_name=TopicName("__cluster_metadata"), partitions=(partition,)
        )
        response = await self.call(describing.DescribeQuorumRequest(topics=(topic,)))
        described: PartitionData = response.topics[0].partitions[0]
        return described

    async def stop(self) -> None:
        self.simulated.stop()
        await until(lambda: not self.runs)

    def crash(self) -> None:
        """Unsynced data is lost; others notice that it has ended."""
        self.simulated.kill()
        self.disk.crash()


class QuorumCluster:
    def __init__(self, world: World, configs: dict[str, object]) -> None:
        self.world = world
        self.nodes: dict[int, QuorumNode] = {}  # Of all nodes ever started.
        self._configs = configs

    @property
    def running(self) -> list[QuorumNode]:
        return [node for node in self.nodes.values() if node.simulated.serving]

    def __getitem__(self, node_id: int) -> QuorumNode:
        """Created on first use."""
        if node_id not in self.nodes:
            join = None if node_id == 1 else self[1].simulated
            self.nodes[node_id] = QuorumNode(self.world, node_id, join)
        return self.nodes[node_id]

    async def start(self, node_id: int, **configs: object) -> QuorumNode:
        """Returns once it serves."""
        node = self.begin(node_id, **configs)
        await until(lambda: node.simulated.serving)
        return node

    def begin(self, node_id: int, **configs: object) -> QuorumNode:
        """Does not wait until it serves."""
        node = self[node_id]
        node.configs.clear()
        for name, value in {**self._configs, **configs}.items():
            node.configs[name.replace("_", ".")] = str(value)
        node.simulated.start()
        return node

    async def form(self, count: int) -> list[QuorumNode]:
        """Starts them as voters."""
        nodes = [await self.start(node_id) for node_id in range(1, count + 1)]
        for node in nodes:
            await until_voter(node)
        return nodes

    async def leader(self, *, other_than: QuorumNode | None = None) -> QuorumNode:
        """The leader of the newest epoch: an older leader may not know of it yet."""

        def leading() -> list[QuorumNode]:
            return [node for node in self.running if node.leads and node is not other_than]

        await until(lambda: bool(leading()))
        return max(leading(), key=lambda node: node.core.state.epoch)

    def cut_off(self, node: QuorumNode) -> None:
        """From the other nodes; data sent meanwhile arrives when the links are mended."""
        self._for_each_way(node, self.world.network.cut)

    def mend(self, node: QuorumNode) -> None:
        self._for_each_way(node, self.world.network.mend)

    def _for_each_way(self, node: QuorumNode, change: Callable[[Host, Host], None]) -> None:
        for other in self.nodes.values():
            if other is not node:
                change(node.simulated.host, other.simulated.host)
                change(other.simulated.host, node.simulated.host)


async def until_voter(node: QuorumNode) -> None:
    await until(lambda: node.core.is_voter)


async def until_set(node: QuorumNode, count: int) -> None:
    await until(lambda: node.partitions == str(count))


def run(
    test: Callable[[QuorumCluster], Coroutine[Any, Any, object]],
    *,
    seed: int = 0,
    **configs: object,
) -> None:
    """`configs` are configs of all nodes, with underscores for dots."""
    world = World(seed)
    try:
        world.run(test(QuorumCluster(world, configs)))
    finally:
        world.close()
