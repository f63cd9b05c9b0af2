"""A whole node on a failing disk: real sockets, real handlers, a disk in memory."""

import asyncio
import dataclasses
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.types import TopicName
from tests.node.wire_client import WireClient

from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import milliseconds
from ottla.storage.faulty_filesystem import FaultyFilesystem

SETTINGS = ServeSettings(host="127.0.0.1", port=0)


@asynccontextmanager
async def client_of(node: Node) -> AsyncIterator[WireClient]:
    client = await WireClient.connect(node.endpoints[0].port)
    try:
        yield client
    finally:
        with suppress(ConnectionError):
            await client.close()


async def started(disk: FaultyFilesystem) -> Node:
    environment = dataclasses.replace(Environment.real(), filesystem=disk)
    node = Node(load_config(SETTINGS, {}), environment)
    await node.start()
    return node


@asynccontextmanager
async def serving(disk: FaultyFilesystem) -> AsyncIterator[WireClient]:
    """A client of a started node, which is stopped cleanly at the end."""
    node = await started(disk)
    async with client_of(node) as client:
        yield client
    await node.stop()


async def crash(node: Node, disk: FaultyFilesystem) -> None:
    """The power fails: further writes of the node are lost, and the disk stays as it is."""
    disk.power_loss_after(0)
    with suppress(BaseException):
        await node.stop()
    disk.crash()


@pytest.mark.parametrize("seed", range(12))
def test_what_was_acknowledged_survives_a_power_loss(seed: int) -> None:
    async def run() -> None:
        disk = FaultyFilesystem(seed)
        acknowledged: list[bytes] = []
        for round_number in range(3):
            node = await started(disk)
            async with client_of(node) as client:
                if round_number == 0:
                    await client.create_topic("orders")
                for number in range(5):
                    value = b"%d-%d" % (round_number, number)
                    answer = await client.produce("orders", value)
                    assert answer.error_code == 0
                    acknowledged.append(value)
                assert await client.read_all("orders") == acknowledged
            await crash(node, disk)

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(4))
def test_a_deleted_topic_leaves_no_log_behind_after_a_power_loss(seed: int) -> None:
    """The deletion is committed, but the new name of the directory may be lost."""

    async def run() -> None:
        disk = FaultyFilesystem(seed)
        node = await started(disk)
        async with client_of(node) as client:
            await client.create_topic("orders")
            await client.produce("orders", b"kept")
            topics = (DeleteTopicState(name=TopicName("orders"), topic_id=None),)
            request = DeleteTopicsRequest(topics=topics, timeout=milliseconds(30_000))
            assert (await client.call(request)).responses[0].error_code == 0
        await crash(node, disk)
        node = await started(disk)
        assert not disk.exists(f"{node.directories[0]}/orders-0")
        await node.stop()

    asyncio.run(run())


def test_a_full_disk_refuses_writes_serves_reads_and_recovers() -> None:
    async def run() -> None:
        disk = FaultyFilesystem()
        async with serving(disk) as client:
            await client.create_topic("orders")
            assert (await client.produce("orders", b"before")).error_code == 0
            disk.disk_full()
            refused = await client.produce("orders", b"refused")
            assert refused.error_code == ErrorCode.kafka_storage_error
            assert await client.read_all("orders") == [b"before"]
            disk.disk_full(None)
            assert (await client.produce("orders", b"after")).error_code == 0
            assert await client.read_all("orders") == [b"before", b"after"]

    asyncio.run(run())


def test_a_node_stops_in_order_while_its_disk_is_full() -> None:
    async def run() -> None:
        disk = FaultyFilesystem()
        async with serving(disk) as client:
            await client.create_topic("orders")
            assert (await client.produce("orders", b"kept")).error_code == 0
            disk.disk_full()
        disk.disk_full(None)
        async with serving(disk) as client:
            assert await client.read_all("orders") == [b"kept"]

    asyncio.run(run())


def test_a_topic_that_was_created_on_a_full_disk_is_served_when_there_is_room() -> None:
    async def run() -> None:
        disk = FaultyFilesystem()
        async with serving(disk) as client:
            make_directory = disk.make_directory

            def full(path: str, *, sync: bool = True) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

            disk.make_directory = full  # type: ignore[method-assign]
            await client.create_topic("orders")
            refused = await client.produce("orders", b"refused")
            assert refused.error_code == ErrorCode.kafka_storage_error
            disk.make_directory = make_directory  # type: ignore[method-assign]
            while (await client.produce("orders", b"kept")).error_code:
                pass
            assert await client.read_all("orders") == [b"kept"]

    asyncio.run(run())


def test_a_failed_sync_is_never_acknowledged_and_takes_the_directory_offline() -> None:
    async def run() -> None:
        disk = FaultyFilesystem()
        async with serving(disk) as client:
            await client.create_topic("orders")
            assert (await client.produce("orders", b"kept")).error_code == 0
            disk.fail_next_sync()
            answer = await client.produce("orders", b"lost")
            assert answer.error_code == ErrorCode.kafka_storage_error
            answer = await client.produce("orders", b"refused")
            assert answer.error_code == ErrorCode.kafka_storage_error

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(4))
def test_what_is_served_after_a_failed_sync_and_a_restart_survives_a_power_loss(seed: int) -> None:
    """The machine kept running, so the cache has what the disk may lack."""

    async def run() -> None:
        disk = FaultyFilesystem(seed)
        async with serving(disk) as client:
            await client.create_topic("orders")
            assert (await client.produce("orders", b"kept")).error_code == 0
            disk.fail_next_sync()
            assert (await client.produce("orders", b"not acknowledged")).error_code
        node = await started(disk)
        async with client_of(node) as client:
            served = await client.read_all("orders")
        assert served[0] == b"kept"
        await crash(node, disk)
        async with serving(disk) as client:
            assert await client.read_all("orders") == served

    asyncio.run(run())


def test_a_fetch_of_what_was_never_synced_sees_nothing_of_it() -> None:
    """With `flush.policy = ack` nothing is readable that a power loss could undo."""

    async def run() -> None:
        disk = FaultyFilesystem()
        async with serving(disk) as client:
            await client.create_topic("orders")
            disk.fail_next_sync()
            await client.produce("orders", b"lost")
            assert (await client.fetch("orders", 0)).records in (None, b"")

    asyncio.run(run())
