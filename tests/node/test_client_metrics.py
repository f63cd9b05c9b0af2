"""Clients push their metrics to a real node, which shows them on its page (KIP-714)."""

import asyncio
import contextlib
from uuid import UUID

from confluent_kafka import Producer
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.get_telemetry_subscriptions.v0.request import GetTelemetrySubscriptionsRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.list_config_resources.v1.request import ListConfigResourcesRequest
from kio.schema.push_telemetry.v0.request import PushTelemetryRequest
from kio.static.primitive import i8, i32
from tests.node import metrics_pages
from tests.node.test_metrics import scrape, started
from tests.node.wire_client import WireClient
from tests.protocol.test_otlp import GAUGE, SUM, written

from ottla.protocol.errors import ErrorCode
from ottla.records.compression import Compression, compress

SUBSCRIPTION = i8(16)


async def alter(client: WireClient, name: str, **values: str) -> ErrorCode:
    configs = tuple(
        AlterableConfig(name=key.replace("_", "."), config_operation=i8(0), value=value)
        for key, value in values.items()
    )
    resource = AlterConfigsResource(resource_type=SUBSCRIPTION, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)
    (answer,) = (await client.call(request)).responses
    return ErrorCode(answer.error_code)


def test_a_subscription_is_set_described_and_listed() -> None:
    async def run() -> None:
        async with started() as (client, _):
            assert await alter(client, "a", interval_ms="99") is ErrorCode.invalid_request
            assert await alter(client, "a", match="color=red") is ErrorCode.invalid_config
            assert await alter(client, "", metrics="*") is ErrorCode.invalid_request
            assert await alter(client, "a", metrics="x.,y.", match="client_id=a(b") is (
                ErrorCode.invalid_config
            )
            assert await alter(client, "a", metrics="x.,y.") is ErrorCode.none
            resource = DescribeConfigsResource(
                resource_type=SUBSCRIPTION, resource_name="a", configuration_keys=None
            )
            (described,) = (
                await client.call(DescribeConfigsRequest(resources=(resource,)))
            ).results
            listed = await client.call(ListConfigResourcesRequest(resource_types=(SUBSCRIPTION,)))
        assert [
            (config.name, config.value, config.config_source) for config in described.configs
        ] == [
            ("interval.ms", "300000", 5),
            ("match", "", 5),
            ("metrics", "x.,y.", 7),
        ]
        assert [found.resource_name for found in listed.config_resources] == ["a"]

    asyncio.run(run())


def test_only_a_node_with_metrics_asks_clients_for_theirs() -> None:
    async def advertised(**settings: str) -> set[int]:
        async with started(**settings) as (client, _):
            request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
            return {api.api_key for api in (await client.call(request)).api_keys}

    assert {71, 72} <= asyncio.run(advertised())
    assert not {71, 72} & asyncio.run(advertised(**{"metrics.port": "-1"}))


def test_what_is_pushed_is_on_the_page_whatever_it_is_compressed_with() -> None:
    async def run() -> None:
        async with started() as (client, url):
            await alter(client, "all", metrics="*", interval_ms="3600000")
            for codec in Compression:
                asked = await client.call(GetTelemetrySubscriptionsRequest(client_instance_id=None))
                assert asked.accepted_compression_types == (4, 3, 1, 2)
                assert asked.requested_metrics == ("*",)
                assert asked.client_instance_id
                request = PushTelemetryRequest(
                    client_instance_id=asked.client_instance_id,
                    subscription_id=asked.subscription_id,
                    terminating=False,
                    compression_type=i8(codec),
                    metrics=compress(written(GAUGE, SUM), codec),
                )
                assert (await client.call(request)).error_code is ErrorCode.none
                again = (await client.call(request)).error_code
                assert again is ErrorCode.throttling_quota_exceeded
            found = await scrape(url)
        assert found["ottla_client_metrics_clients",] == 5
        assert len([key for key in found if key[0] == "ottla_client_gauge"]) == 5
        assert len([key for key in found if key[0] == "ottla_client_counter_total"]) == 5

    asyncio.run(run())


def test_bad_pushes_are_refused_and_the_connection_goes_on() -> None:
    async def run() -> None:
        async with started(**{"telemetry.max.bytes": "100"}) as (client, _):
            await alter(client, "all", metrics="*", interval_ms="3600000")

            async def push(**fields: object) -> ErrorCode:
                asked = await client.call(GetTelemetrySubscriptionsRequest(client_instance_id=None))
                request: dict[str, object] = {
                    "client_instance_id": asked.client_instance_id,
                    "subscription_id": asked.subscription_id,
                    "terminating": False,
                    "compression_type": i8(0),
                    "metrics": b"",
                }
                answer = await client.call(PushTelemetryRequest(**{**request, **fields}))  # type: ignore[arg-type]
                return ErrorCode(answer.error_code)

            assert await push() is ErrorCode.none
            assert await push(client_instance_id=None) is ErrorCode.invalid_request
            assert await push(client_instance_id=UUID(int=1)) is ErrorCode.invalid_request
            assert await push(subscription_id=i32(0)) is ErrorCode.unknown_subscription_id
            assert await push(compression_type=i8(9)) is ErrorCode.unsupported_compression_type
            assert await push(metrics=bytes(101)) is ErrorCode.telemetry_too_large
            assert await push(metrics=b"\xff") is ErrorCode.invalid_record
            assert await push(metrics=b"no zstd", compression_type=i8(4)) is (
                ErrorCode.invalid_record
            )
            bomb = compress(bytes(100_000), Compression.ZSTD)
            assert await push(metrics=bomb, compression_type=i8(4)) is (
                ErrorCode.telemetry_too_large
            )

    asyncio.run(run())


def test_librdkafka_pushes_what_it_is_asked_for() -> None:
    def observe(port: int, url: str) -> metrics_pages.Samples:
        config = {"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "orders-1"}
        with contextlib.closing(Producer(config)) as producer:
            producer.produce("orders", b"lamp")
            producer.flush()
            return metrics_pages.scrape_until(url, lambda found: bool(_of_clients(found)))

    async def run() -> None:
        async with started() as (client, url):
            await client.create_topic("orders")
            match = "client_id=orders-.*,client_software_name=confluent-kafka-python"
            await alter(client, "all", metrics="*", interval_ms="100", match=match)
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(None, observe, client.port, url)
        assert all("orders-1" in key for key in _of_clients(found))
        assert any("org.apache.kafka.producer" in part for key in found for part in key)

    asyncio.run(run())


def _of_clients(found: metrics_pages.Samples) -> list[tuple[str, ...]]:
    names = ("ottla_client_gauge", "ottla_client_counter_total")
    return [key for key in found if key[0] in names]
