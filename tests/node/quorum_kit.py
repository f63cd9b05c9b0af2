"""Quorums in one process: real cores, logs and wire format, disks in memory, a network of calls."""

import asyncio
import dataclasses
from concurrent.futures import ThreadPoolExecutor
from random import Random
from types import SimpleNamespace
from uuid import UUID

from kio.schema.add_raft_voter.v1.request import AddRaftVoterRequest, Listener
from kio.schema.describe_quorum.v2 import request as describing
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

from ottla.controller.effective_configs import ConfigRules
from ottla.controller.image import BROKER_RESOURCE
from ottla.handlers.api import ColdApi
from ottla.handlers.envelope import handle as handle_envelope
from ottla.handlers.table import API_TABLE
from ottla.network.peers import PeerRefused, PeerUnreachable
from ottla.node.config import BROKER_SCHEMA, GROUP_SCHEMA, TOPIC_SCHEMA
from ottla.node.environment import Environment
from ottla.node.metadata_feed import MetadataFeed
from ottla.node.quorum import MetadataQuorum, QuorumSettings, open_replica
from ottla.protocol.addresses import Address
from ottla.protocol.codec import read_request, read_response, write_request, write_response
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.frames import parse_request_header
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.times import NO_THROTTLE, milliseconds
from ottla.raft.quorum import Identity
from ottla.raft.quorum_state import QuorumState
from ottla.raft.states import Leader
from ottla.raft.voters import Endpoint, ReplicaKey
from ottla.runtime.quorum_state_file import QuorumStateFile
from ottla.runtime.raft_log import metadata_directory
from ottla.runtime.supervisor import Supervisor
from ottla.storage.broker_config import topic_defaults
from ottla.storage.faulty_filesystem import FaultyFilesystem

CLUSTER_ID = "test-cluster"
ENVELOPE_KEY = 58
TIMEOUT_S = 90
METADATA = metadata_directory("/data")

QUICK = {
    "controller.quorum.election.timeout.ms": 50,
    "controller.quorum.fetch.timeout.ms": 150,
    "controller.quorum.request.timeout.ms": 150,
}


def set_partitions(count):
    """A change of the metadata that needs no broker."""
    config = AlterableConfig(name="num.partitions", config_operation=0, value=str(count))
    resource = AlterConfigsResource(
        resource_type=BROKER_RESOURCE, resource_name="", configs=(config,)
    )
    return IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


class QuorumNode:
    """One life of a node over a disk that survives it."""

    def __init__(self, network, node_id, disk, *, bootstrap=(), cluster_id=CLUSTER_ID, **values):
        self.id = node_id
        self.disk = disk
        self.failures = []
        self.claims = []
        self.network = network
        self.loop = asyncio.get_running_loop()
        self.executor = ThreadPoolExecutor(2)
        self.feed = MetadataFeed()
        self.image = self.feed.image
        self.supervisor = Supervisor(self.loop, self.failures.append)
        self.endpoint = Endpoint("PLAINTEXT", f"node{node_id}", 9092)
        self.key = ReplicaKey(node_id, UUID(int=node_id))
        ids = range(-2, -2 - len(bootstrap), -1)
        static = BROKER_SCHEMA.parse({**QUICK, **values})
        rules = ConfigRules(TOPIC_SCHEMA, BROKER_SCHEMA, static, topic_defaults, GROUP_SCHEMA)
        self.quorum = MetadataQuorum(
            settings=QuorumSettings(
                identity=Identity(
                    cluster_id=cluster_id,
                    key=self.key,
                    endpoints=(self.endpoint,),
                    bootstrap=tuple(ids),
                ),
                listener_name="PLAINTEXT",
                bootstrap={
                    number: Address(f"node{other}", 9092)
                    for number, other in zip(ids, bootstrap, strict=True)
                },
                rules=rules,
            ),
            replica=open_replica(disk, "/data", 0),
            feed=self.feed,
            peers=NetworkPeers(network, node_id),
            environment=dataclasses.replace(
                Environment.real(),
                filesystem=disk,
                random=Random(node_id),
                executor=self.executor,
                quorum_executor=self.executor,
            ),
            supervisor=self.supervisor,
            on_failure=self.failures.append,
            on_claim=self.claims.append,
        )

    @property
    def core(self):
        return self.quorum.driver.core

    @property
    def leads(self):
        return self.quorum.leadership.is_here

    @property
    def partitions(self):
        return self.image.default_broker_configs().get("num.partitions")

    async def start(self):
        self.network.nodes[self.id] = self
        await self.quorum.start()
        return self

    async def call(self, request, timeout_ms=None):
        async with asyncio.timeout(TIMEOUT_S):
            return await self.quorum.controller.call(request, timeout_ms=timeout_ms)

    async def set(self, count):
        response = await self.call(set_partitions(count))
        assert response.responses[0].error_code == 0, response

    async def add_voter(self, *, ack_when_committed=True):
        listener = Listener(
            name=self.endpoint.name, host=self.endpoint.host, port=self.endpoint.port
        )
        await self.call(
            AddRaftVoterRequest(
                cluster_id=CLUSTER_ID,
                timeout=milliseconds(10_000),
                voter_id=self.id,
                voter_directory_id=self.key.directory_id,
                listeners=(listener,),
                ack_when_committed=ack_when_committed,
            )
        )

    async def describe(self):
        partition = describing.PartitionData(partition_index=0)
        topic = describing.TopicData(topic_name="__cluster_metadata", partitions=(partition,))
        response = await self.call(describing.DescribeQuorumRequest(topics=(topic,)))
        return response.topics[0].partitions[0]

    async def stop(self):
        self.network.nodes.pop(self.id, None)
        await self.quorum.stop()
        await self.supervisor.stop()
        self.executor.shutdown()
        self.quorum.close()

    async def crash(self):
        """The power goes: nothing that is done from now on reaches the disk."""
        self.network.nodes.pop(self.id, None)
        self.disk.power_loss_after(0)
        await self.quorum.stop()
        await self.supervisor.stop()
        self.executor.shutdown()
        self.disk.crash()


class Network:
    def __init__(self):
        self.nodes = {}
        self.cut_off = set()
        self.calls_count = 0

    def reach(self, source, host):
        self.calls_count += 1
        target = int(host.removeprefix("node"))
        if {source, target} & self.cut_off:
            raise PeerUnreachable(f"{host} is away")
        if target not in self.nodes:
            raise PeerRefused(f"{host} has ended")
        return self.nodes[target]


class NetworkPeers:
    """Stands for `Peers`: everything goes through the bytes of the wire."""

    def __init__(self, network, node_id):
        self.network = network
        self.node_id = node_id
        self.client_id = f"node-{node_id}"

    async def call(
        self, address, api_key, api_version, request, *, timeout_ms, purpose="", at_once=False
    ):
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                frame = write_request(api_key, api_version, 1, self.client_id, request)[4:]
                target = self.network.reach(self.node_id, address.host)
                response = await answer(target, bytearray(frame))
                self.network.reach(self.node_id, address.host)
        except TimeoutError:
            raise PeerUnreachable(f"{address} is slow") from None
        return read_response(api_key, api_version, memoryview(response)[4:])[1]

    def expect(self, address):
        pass

    def is_connected(self, address, purpose):
        return True

    def drop(self, address, purpose, reason):
        pass


async def answer(node, frame):
    header = parse_request_header(memoryview(frame))
    request = read_request(header, memoryview(frame))
    try:
        if header.api_key == ENVELOPE_KEY:
            broker = SimpleNamespace(
                controller=node.quorum.controller,
                metadata_end_offset=lambda: node.quorum.applier.applied_offset,
            )
            response = await handle_envelope(broker, None, request)
        else:
            response = await node.quorum.requests.handle(request)
    except ApiError as error:
        api = API_TABLE[header.api_key]
        if isinstance(api, ColdApi):
            response = api.module.error_response(request, error)
        else:
            response = FetchResponse(throttle_time=NO_THROTTLE, error_code=error.code, responses=())
    return write_response(header.api_key, header.api_version, header.correlation_id, response)


class QuorumCluster:
    """Nodes by id; those after the first are to join it."""

    def __init__(self, **values):
        self.network = Network()
        self.disks = {}
        self.values = values

    @property
    def nodes(self):
        return self.network.nodes

    async def start(self, node_id, **more):
        disk = self.disks.get(node_id)
        if disk is None:
            disk = self.disks[node_id] = FaultyFilesystem(seed=node_id)
            if node_id != 1:
                disk.make_directory(METADATA)
                QuorumStateFile(disk, METADATA).save(QuorumState())
        bootstrap = () if node_id == 1 else (1,)
        node = QuorumNode(
            self.network, node_id, disk, bootstrap=bootstrap, **{**self.values, **more}
        )
        return await node.start()

    async def form(self, count):
        """All of them voters."""
        nodes = [await self.start(node_id) for node_id in range(1, count + 1)]
        for node in nodes[1:]:
            await until_voter(node)
        return nodes

    async def leader(self, *, other_than=None):
        """Of the newest epoch: an older one may not have heard of it yet."""

        def leading():
            return [node for node in self.nodes.values() if node.leads and node != other_than]

        await until(leading)
        return max(leading(), key=lambda node: node.core.state.epoch)

    async def stop(self):
        for node in list(self.nodes.values()):
            await node.stop()
            assert node.failures == []


async def until_voter(node):
    """As a node does it that adds itself: again, while the leader is new or busy."""
    while not node.core.is_voter:
        try:
            await node.add_voter()
        except ApiError as error:
            if error.code not in (ErrorCode.request_timed_out, ErrorCode.not_controller):
                raise
        await asyncio.sleep(0.005)


async def until(condition):
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


def is_leader(node):
    return node.core is not None and isinstance(node.core.state, Leader)
