"""A node that starts a cluster although another cluster may know it."""

import asyncio
import dataclasses
import time
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32
from tests.node.wire_client import WireClient
from tests.ports import HOST, ReservedPort

from ottla.network.endpoints import Endpoint
from ottla.network.peers import Peers, PeerUnreachable
from ottla.node.beginning import (
    CLAIMED,
    LOOPBACK_WAIT_S,
    WAIT_S,
    is_loopback,
    listen,
    listening_s,
)
from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.node.start_errors import StartError
from ottla.protocol.addresses import Address
from ottla.protocol.times import milliseconds
from ottla.raft.messages import VoteRequest
from ottla.raft.voters import ReplicaKey
from ottla.raft.wire_requests import request_to_wire
from ottla.runtime.claims import Claim
from ottla.runtime.raft_log import metadata_directory
from ottla.storage.faulty_filesystem import FaultyFilesystem

DATA = "/data"
WAIT_FOR_IT_S = 240
TIME_S = 1.5


def endpoints(*texts: tuple[str, int]) -> list[Endpoint]:
    return [Endpoint("PLAINTEXT", *text) for text in texts]


def test_time_in_which_the_process_did_not_run_is_listened_again() -> None:
    async def hear_late() -> object:
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[Claim] = loop.create_future()

        def starve(count: int) -> None:
            time.sleep(TIME_S / 3)
            if count:
                loop.call_soon(starve, count - 1)
            else:
                heard.set_result(Claim("another", 2))

        loop.call_soon(starve, 5)  # Twice as long.
        await listen(heard, TIME_S)
        return heard.done() and heard.result()

    assert asyncio.run(hear_late()) == Claim("another", 2)


def test_nobody_is_listened_to_for_ever() -> None:
    async def hear_nothing() -> bool:
        heard: asyncio.Future[Claim] = asyncio.get_running_loop().create_future()
        await listen(heard, 0.01)
        return heard.done()

    assert not asyncio.run(hear_nothing())


def test_what_only_this_machine_reaches_is_loopback() -> None:
    assert is_loopback(endpoints(("localhost", 1), ("127.0.0.5", 2), ("::1", 3)))
    for host in ("", "0.0.0.0", "::", "192.0.2.1", "one.example.com"):
        assert not is_loopback(endpoints(("localhost", 1), (host, 2)))


def test_nobody_is_expected_at_a_port_that_is_just_any() -> None:
    assert listening_s(endpoints(("localhost", 0))) == 0
    assert listening_s(endpoints(("localhost", 9092))) == LOOPBACK_WAIT_S
    assert listening_s(endpoints(("", 9092))) == WAIT_S


def new_node(disk: FaultyFilesystem, port: int, **settings: object) -> Node:
    given = ServeSettings(host=HOST, port=port, data=(Path(DATA),))
    environment = dataclasses.replace(Environment.real(), filesystem=disk)
    values = load_config(dataclasses.replace(given, **settings), {})  # type: ignore[arg-type]
    return Node(values, environment)


async def knock_until(done: "asyncio.Future[Any]", port: int, voter_id: int = 1) -> None:
    """Acts as node 2 of another cluster, to which the node with this id belongs."""
    peers = Peers(asyncio.get_running_loop(), "node-2", lambda: 0.5)
    entity: Any = request_to_wire(
        VoteRequest("old", ReplicaKey(voter_id), ReplicaKey(2, UUID(int=2)), 0, 0, 0, True)
    )
    while not done.done():
        try:
            await peers.call(
                Address(HOST, port),
                entity,
                timeout_ms=1000 * WAIT_FOR_IT_S,
                at_once=True,
            )
        except PeerUnreachable:
            await asyncio.sleep(0.01)
    peers.close()


def run(test: Awaitable[None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WAIT_FOR_IT_S):
            await test

    asyncio.run(bounded())


def test_a_node_that_another_cluster_knows_does_not_begin_one() -> None:
    async def test() -> None:
        disk, port = FaultyFilesystem(), ReservedPort()
        node = new_node(disk, port.number)
        starting = asyncio.ensure_future(node.start())
        await knock_until(starting, port.number)
        with pytest.raises(StartError, match=r"node 1 at .* is a node of cluster old, as node 2"):
            await starting
        assert not disk.exists(DATA)

    run(test())


def test_a_node_that_hears_of_it_later_stops_and_does_not_start_again() -> None:
    async def test() -> None:
        disk, port = FaultyFilesystem(), ReservedPort()
        node = new_node(disk, port.number)
        await node.start()
        client = await WireClient.connect(port.number)
        failed: asyncio.Future[object] = asyncio.ensure_future(node.failed.wait())
        await knock_until(failed, port.number)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await client.call(create_topic())
        with suppress(ConnectionError):
            await client.close()
        await node.stop()
        assert disk.exists(f"{DATA}/{CLAIMED}")
        with pytest.raises(StartError, match=rf"cluster old.*remove {DATA}/{CLAIMED}"):
            await new_node(disk, port.number).start()
        disk.remove(f"{DATA}/{CLAIMED}")
        again = new_node(disk, port.number)
        await again.start()
        await again.stop()

    run(test())


def create_topic() -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=TopicName("orders"),
        num_partitions=i32(1),
        replication_factor=i16(1),
        assignments=(),
        configs=(),
    )
    return CreateTopicsRequest(topics=(topic,), timeout=milliseconds(1000), validate_only=False)


def test_who_means_another_node_is_not_heard() -> None:
    async def test() -> None:
        disk, port = FaultyFilesystem(), ReservedPort()
        node = new_node(disk, port.number)
        starting = asyncio.ensure_future(node.start())
        await knock_until(starting, port.number, voter_id=7)
        await starting
        assert not node.failed.is_set()
        await node.stop()

    run(test())


def test_beyond_loopback_a_cluster_is_begun_only_when_that_is_said() -> None:
    async def test() -> None:
        disk = FaultyFilesystem()
        node = new_node(disk, 0, host="0.0.0.0")
        with pytest.raises(StartError, match=r"/data is new.*--join.*--new-cluster"):
            await node.start()
        assert not disk.exists(DATA)
        environment = dataclasses.replace(Environment.real(), filesystem=disk)
        settings = ServeSettings(host="0.0.0.0", port=0, data=(Path(DATA),))
        node = Node(load_config(settings, {}), environment, new_cluster=True)
        await node.start()
        await node.stop()
        node = new_node(disk, 0, host="0.0.0.0")
        await node.start()
        await node.stop()

    run(test())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda disk: disk.remove(f"{DATA}/meta.properties"), "meta.properties is missing"),
        (lambda disk: disk.remove_tree(metadata_directory(DATA)), "metadata is gone from /data"),
        (lambda disk: disk.flip_bit(f"{DATA}/meta.properties", 60), "checksum is wrong.*--join"),
    ],
)
def test_a_directory_that_has_lost_a_part_is_not_taken_for_a_new_one(damage, message) -> None:  # type: ignore[no-untyped-def]
    async def test() -> None:
        disk = FaultyFilesystem()
        node = new_node(disk, 0)
        await node.start()
        await node.stop()
        damage(disk)
        with pytest.raises(StartError, match=message):
            await new_node(disk, 0).start()

    run(test())


def test_a_node_whose_first_directory_is_new_and_whose_second_is_not_begins_nothing() -> None:
    async def test() -> None:
        disk = FaultyFilesystem()
        both = (Path("/one"), Path("/two"))
        node = new_node(disk, 0, data=both)
        await node.start()
        await node.stop()
        disk.remove_tree("/one")
        with pytest.raises(StartError, match=r"/one is new, and /two is of cluster .*--join"):
            await new_node(disk, 0, data=both).start()
        assert not disk.exists("/one")

    run(test())
