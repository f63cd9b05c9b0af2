"""A controller looks at brokers over real sockets."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

from tests.controller.cluster import Cluster
from tests.ports import HOST, ReservedPort

from ottla.controller.machine import ControllerMachine
from ottla.machine.result import Result
from ottla.network.peers import Peers
from ottla.protocol.addresses import Address
from ottla.runtime.ended_brokers import EndedBrokers
from ottla.runtime.supervisor import Supervisor

Addresses = dict[int, Address]


class DirectLeadership:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.is_here = False
        self.changed = asyncio.get_running_loop().create_future()

    def submit(self, operation: Callable[[ControllerMachine, int], Result[Any]]) -> None:
        self.cluster.apply(operation(self.cluster.machine, self.cluster.now_ms))


def run(test: Callable[[Cluster, EndedBrokers, Addresses], Awaitable[None]]) -> None:
    """Runs with a cluster of three, whose controller is broker 1, and the others' addresses."""

    async def whole() -> None:
        cluster = Cluster(brokers=3)
        addresses: Addresses = {}
        loop = asyncio.get_running_loop()
        failures: list[BaseException] = []
        supervisor = Supervisor(loop, failures.append)
        peers = Peers(loop, "node-1", lambda: 0.5)
        leadership: Any = DirectLeadership(cluster)
        ended = EndedBrokers(
            node_id=1,
            leadership=leadership,
            image=cluster.image,
            address_of=addresses.get,
            peers=peers,
            supervisor=supervisor,
        )
        try:
            await test(cluster, ended, addresses)
        finally:
            peers.close()
            await supervisor.stop()
        assert failures == []

    asyncio.run(whole())


def _fenced(cluster: Cluster) -> set[int]:
    return {broker.broker_id for broker in cluster.image.brokers.values() if broker.fenced}


async def until_fenced(cluster: Cluster, *ids: int) -> None:
    async with asyncio.timeout(120):
        while _fenced(cluster) != set(ids):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def let_all_look(ended: EndedBrokers) -> None:
    """Waits for the started tasks."""
    tasks = [task for task in asyncio.all_tasks() if task.get_name().startswith("look at")]
    await asyncio.gather(*tasks)


def test_who_refuses_connections_has_ended() -> None:
    async def test(cluster: Cluster, ended: EndedBrokers, addresses: Addresses) -> None:
        nobody_listens = ReservedPort()
        addresses[2] = Address(HOST, nobody_listens.number)
        ended.look_at(1)  # Itself.
        ended.look_at(2)
        ended.look_at(3)  # Its address is not known.
        ended.look_at(9)
        await until_fenced(cluster, 2)
        await let_all_look(ended)
        await until_fenced(cluster, 2)

    run(test)


def test_who_closes_the_connection_while_it_ends_is_asked_again() -> None:
    async def test(cluster: Cluster, ended: EndedBrokers, addresses: Addresses) -> None:
        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            server.close()
            writer.transport.abort()

        server = await asyncio.start_server(close, "127.0.0.1", 0)
        addresses[2] = Address(*server.sockets[0].getsockname())
        ended.look_at(2)
        await until_fenced(cluster, 2)

    run(test)


def test_who_is_silent_may_be_alive() -> None:
    async def test(cluster: Cluster, ended: EndedBrokers, addresses: Addresses) -> None:
        async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with closing(writer), suppress(ConnectionError):
                await reader.read()

        async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
            addresses[2] = Address(*server.sockets[0].getsockname())
            ended.look_at(2)
            await let_all_look(ended)
            await until_fenced(cluster)

    run(test)


def test_a_new_controller_looks_at_all() -> None:
    async def test(cluster: Cluster, ended: EndedBrokers, addresses: Addresses) -> None:
        nobody_listens = ReservedPort()
        addresses[2] = addresses[3] = Address(HOST, nobody_listens.number)
        leadership: Any = ended.leadership
        watching = asyncio.ensure_future(ended.watch())
        await asyncio.sleep(0)
        changed, leadership.changed = (
            leadership.changed,
            asyncio.get_running_loop().create_future(),
        )
        leadership.is_here = True
        changed.set_result(None)
        await until_fenced(cluster, 2, 3)
        watching.cancel()

    run(test)
