"""One real node, alone in its cluster, over the simulator's disk, network and time.

A test calls its handlers directly, or sends them bytes over a connection. Nothing happens between
the calls of a test: time advances only while one of them waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

from kio.schema.broker_registration.v4.request import BrokerRegistrationRequest, Listener
from kio.schema.types import BrokerId
from kio.static.primitive import i16, u16
from tests.kits.world import World, until

from ottla.controller.image import MetadataImage
from ottla.handlers.api import Api
from ottla.handlers.broker import Broker, RequestContext
from ottla.handlers.dispatch import make_dispatch
from ottla.handlers.table import API_TABLE
from ottla.machine.result import Result
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.node.node import Node
from ottla.node.quorum import MetadataQuorum
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ApiError
from ottla.records.batch import read_header
from ottla.records.builder import Record, build_batch
from ottla.replication.manager import ReplicaManager
from ottla.replication.partition import Partition
from ottla.replication.partition_leader import PartitionLeader
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.log import PartitionLog
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.simulated_node import DATA, PORT
from ottla.testing.simulator.transport import SimulatedTransport

NODE_ID = 1
HOST = f"node-{NODE_ID}"
_LISTENERS = (f"PLAINTEXT://{HOST}:{PORT}", f"INTERNAL://{HOST}:{PORT + 1}")
_CONFIGS = {
    "advertised.listeners": "PLAINTEXT://public:9092,INTERNAL://private:9093",
    "broker.rack": "r1",
    "group.initial.rebalance.delay.ms": "0",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "quorum.size": "1",
}

T = TypeVar("T")


class SingleNode:
    """Node 1, with two listeners. `configs` are its configs, with underscores for dots."""

    def __init__(self, *, directories: Sequence[str] = (DATA,), **configs: object) -> None:
        given = {key.replace("_", "."): str(value) for key, value in configs.items()}
        self.world = World()
        self.simulated = self.world.add_node(
            NODE_ID, _CONFIGS | given, directories=directories, listeners=_LISTENERS
        )
        self.world.run(self.world.start(self.simulated))

    def close(self) -> None:
        self.world.close()

    @property
    def node(self) -> Node:
        assert self.simulated.node is not None, "it is down"
        return self.simulated.node

    @property
    def process(self) -> Process:
        assert self.simulated.host.process is not None
        return self.simulated.host.process

    @property
    def disk(self) -> FaultyFilesystem:
        return self.simulated.host.disk

    @cached_property
    def broker(self) -> Broker:
        """The context of its handlers, unless a test replaces it."""
        assert self.node.broker is not None
        return self.node.broker

    @property
    def image(self) -> MetadataImage:
        return self.node.image

    @property
    def replicas(self) -> ReplicaManager:
        return self.node.replicas

    @property
    def quorum(self) -> MetadataQuorum:
        assert self.node.quorum is not None
        return self.node.quorum

    @property
    def server(self) -> Server:
        assert self.node.server is not None
        return self.node.server

    # Requests.

    def run(self, awaitable: Awaitable[T]) -> T:
        """Runs it in the node's process."""

        async def whole() -> T:
            return await awaitable

        return self.world.run(whole(), self.process)

    def call(
        self,
        handle: Callable[[Broker, RequestContext, Any], Any],
        request: object,
        api_version: int = 99,
        listener_name: str = "PLAINTEXT",
    ) -> Any:
        """Calls a handler, without dispatch and codec."""

        context = RequestContext(api_version, "client", listener_name, self.client.session)

        async def whole() -> Any:
            response = handle(self.broker, context, request)
            is_here = not (asyncio.isfuture(response) or asyncio.iscoroutine(response))
            return response if is_here else await response

        return self.world.run(whole(), self.process)

    @cached_property
    def client(self) -> "Client":
        """The first connection."""
        return self.connect()

    def connect(self) -> "Client":
        return Client(self)

    def ask(self, api_key: int, version: int, request: object) -> Any:
        """Sends it as bytes, over the first connection."""
        return self.client.ask(api_key, version, request)

    def use(self, broker: Broker | None = None, table: Mapping[int, Api] = API_TABLE) -> None:
        """Handlers used for requests from now on."""
        if broker is not None:
            self.broker = broker
        self.server.use(make_dispatch(self.broker, table))

    # Its state.

    def write(self, *records: object) -> None:
        """Writes to the metadata, bypassing the controller; returns once the node has them."""

        async def append() -> None:
            runtime = self.quorum.leadership.runtime
            assert runtime is not None
            await runtime.submit(lambda *_: Result(None, records))

        self.run(append())

    def register_another(self, broker_id: int) -> None:
        """Registers a broker with only the internal listener; it stays fenced."""
        request = BrokerRegistrationRequest(
            broker_id=BrokerId(broker_id),
            cluster_id=self.broker.cluster_id,
            incarnation_id=UUID(int=broker_id),
            listeners=(
                Listener(name="INTERNAL", host="other", port=u16(9999), security_protocol=i16(0)),
            ),
            features=(),
            rack=None,
        )
        self.run(self.broker.controller.call(request))

    def partition(self, topic: str, index: int) -> Partition:
        """A partition that it leads, once it does."""

        def is_led() -> bool:
            with suppress(ApiError):
                return self.replicas.find(topic, index).leader is not None
            return False

        if not is_led():
            self.run(until(is_led))
        return self.replicas.find(topic, index)

    def leader(self, topic: str, index: int) -> PartitionLeader:
        leader = self.partition(topic, index).leader
        assert leader is not None
        return leader

    def log(self, topic: str, index: int) -> PartitionLog:
        return self.partition(topic, index).log

    def append(self, topic: str, index: int, *timestamps: int) -> PartitionLog:
        """Appends one batch per timestamp, committed."""
        batches = ([Record(timestamp=timestamp, value=b"value")] for timestamp in timestamps)
        return self.append_batches(topic, index, *batches)

    def append_batches(self, topic: str, index: int, *batches: Sequence[Record]) -> PartitionLog:
        """They are committed."""
        leader, log = self.leader(topic, index), self.log(topic, index)

        async def append() -> None:
            for records in batches:
                batch = build_batch(records)
                leader.append(memoryview(batch), read_header(batch), records[0].timestamp)
            await until(lambda: log.high_watermark == log.log_end_offset)

        self.run(append())
        return log


class Client(asyncio.Protocol):
    """A connection from the test's machine, and the node's session for it."""

    session: Session

    def __init__(self, node: SingleNode) -> None:
        self.received = b""
        self.is_open = True
        self._world = node.world
        self._transport: SimulatedTransport
        self._news = asyncio.Event()
        node.world.run(self._connect(node))

    async def _connect(self, node: SingleNode) -> None:
        known = set(node.server.sessions)
        self._transport, _ = await node.world.process.create_connection(lambda: self, HOST, PORT)
        await until(lambda: not known.issuperset(node.server.sessions))
        (self.session,) = set(node.server.sessions) - known

    def data_received(self, data: bytes) -> None:
        self.received += data
        self._news.set()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._news.set()

    def send(self, frame: bytes) -> None:
        """Sends a frame, with its size."""
        self._transport.write(frame)

    def receive(self) -> memoryview | None:
        """The next frame, without its size; None if the connection ended."""
        return self._world.run(self._receive())

    def ask(self, api_key: int, version: int, request: object, correlation_id: int = 7) -> Any:
        return self._world.run(self.asked(api_key, version, request, correlation_id))

    async def asked(
        self, api_key: int, version: int, request: object, correlation_id: int = 7
    ) -> Any:
        """On the test's machine."""
        self.send(write_request(api_key, version, correlation_id, "client", request))
        frame = await self._receive()
        assert frame is not None, "the connection has ended"
        answered, response = read_response(api_key, version, frame)
        assert answered == correlation_id
        return response

    async def _receive(self) -> memoryview | None:
        while not self._is_frame_here():
            if not self.is_open:
                return None
            self._news.clear()
            await self._news.wait()
        end = 4 + int.from_bytes(self.received[:4], "big")
        frame, self.received = self.received[4:end], self.received[end:]
        return memoryview(frame)

    def _is_frame_here(self) -> bool:
        return len(self.received) >= 4 + int.from_bytes(self.received[:4].ljust(4, b"\xff"), "big")
