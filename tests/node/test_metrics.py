"""A real node's metrics, scraped over HTTP and read by Prometheus' own parser."""

import asyncio
import dataclasses
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kio.schema.alter_client_quotas.v1.request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from kio.static.primitive import f64
from tests.node import metrics_pages
from tests.node.metrics_pages import Samples
from tests.node.wire_client import WireClient
from tests.ports import ReservedPort

from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.node.start_errors import StartError
from ottla.storage.faulty_filesystem import FaultyFilesystem


@asynccontextmanager
async def started(**settings: str) -> AsyncIterator[tuple[WireClient, str]]:
    port = ReservedPort()
    overrides = {"metrics.host": "127.0.0.1", "metrics.port": str(port), **settings}
    environment = dataclasses.replace(Environment.real(), filesystem=FaultyFilesystem(0))
    serve = ServeSettings(host="127.0.0.1", port=0, overrides=overrides)
    node = Node(load_config(serve, {}), environment)
    await node.start()
    client = await WireClient.connect(node.endpoints[0].port)
    try:
        yield client, f"http://127.0.0.1:{port}/metrics"
    finally:
        await client.close()
        await node.stop()


async def scrape(url: str) -> Samples:
    return await asyncio.get_running_loop().run_in_executor(None, metrics_pages.scrape, url)


def test_counts_what_was_asked_and_what_was_written() -> None:
    async def run() -> None:
        async with started() as (client, url):
            await client.create_topic("orders")
            before = await scrape(url)
            await client.produce("orders", b"lamp")
            await client.produce("orders", b"desk")
            after = await scrape(url)
        produced = after["ottla_requests_total", "Produce"]
        assert produced - before.get(("ottla_requests_total", "Produce"), 0) == 2
        assert before["ottla_partition_end_offset", "0", "orders"] == 0
        assert after["ottla_partition_end_offset", "0", "orders"] == 2
        assert after["ottla_partition_high_watermark", "0", "orders"] == 2
        size = after["ottla_partition_size_bytes", "0", "orders"]
        assert size > before["ottla_partition_size_bytes", "0", "orders"]
        received = after["ottla_received_bytes_total",] - before["ottla_received_bytes_total",]
        assert received >= size

    asyncio.run(run())


def test_tells_of_the_cluster() -> None:
    async def run() -> None:
        async with started() as (client, url):
            await client.create_topic("orders")
            found = await scrape(url)
        assert found["ottla_controller",] == 1
        assert found["ottla_quorum_leader_id",] == 1
        assert found["ottla_brokers", "active"] == 1
        assert found["ottla_topics",] == 1
        assert found["ottla_leader_partitions",] == 1
        assert found["ottla_offline_partitions",] == 0
        assert found["ottla_under_replicated_partitions",] == 0
        assert found["ottla_connections",] == 1
        assert found["process_open_fds",] > 0

    asyncio.run(run())


def test_topics_and_partitions_can_be_left_out() -> None:
    async def run() -> None:
        async with started(**{"metrics.partitions": "false", "metrics.topics": "false"}) as (
            client,
            url,
        ):
            await client.create_topic("orders")
            found = await scrape(url)
        assert found["ottla_partitions",] == 1
        assert not [sample for sample in found if "orders" in sample]

    asyncio.run(run())


def test_the_port_is_given_back() -> None:
    async def run() -> None:
        async with started() as (_, url):
            port = int(url.split(":")[2].split("/")[0])
            await scrape(url)
        with socket.socket() as again:
            again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            again.bind(("127.0.0.1", port))

    asyncio.run(run())


def test_a_port_in_use_is_named() -> None:
    async def run() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(StartError, match=f"metrics.port {port}"):
                async with started(**{"metrics.port": str(port)}):
                    pass

    asyncio.run(run())


def test_tells_whom_a_quota_held_up() -> None:
    quota = AlterClientQuotasRequest(
        entries=(
            EntryData(
                entity=(EntityData(entity_type="client-id", entity_name=None),),
                ops=(OpData(key="producer_byte_rate", value=f64(1.0), remove=False),),
            ),
        ),
        validate_only=False,
    )

    async def run() -> None:
        async with started() as (client, url):
            await client.create_topic("orders")
            await client.call(quota)
            await client.produce("orders", b"lamp")
            found = await scrape(url)
        assert found["ottla_throttles_total", "producer_byte_rate"] == 1
        assert found["ottla_throttled_seconds_total", "producer_byte_rate"] > 0
        assert found["ottla_throttles_total", "consumer_byte_rate"] == 0
        assert found["ottla_tls_handshakes_total", "full"] == 0

    asyncio.run(run())
