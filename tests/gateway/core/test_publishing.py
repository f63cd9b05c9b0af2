import asyncio

import pytest
from confluent_kafka import KafkaException

from ottla.client.async_wire.cluster import Cluster
from ottla.gateway.core.errors import TooBusy
from ottla.gateway.core.publishing import Publisher
from ottla.gateway.core.record_json import NewRecord
from ottla.gateway.settings import GatewaySettings

NOBODY = "127.0.0.1:1"


def test_a_full_queue_is_told_at_once_and_does_not_grow() -> None:
    async def run() -> None:
        settings = GatewaySettings(NOBODY, queue_records_max=10, publish_timeout_ms=1_000)
        publisher = Publisher(settings, Cluster(NOBODY))
        waiting = [publisher.publish("t", NewRecord(b"v")) for _ in range(10)]
        with pytest.raises(TooBusy):
            publisher.publish("t", NewRecord(b"v"))
        outcomes = await publisher.publish_all("t", [NewRecord(b"v")] * 3)
        assert [type(outcome) for outcome in outcomes] == [TooBusy] * 3
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert {type(result) for result in results} == {KafkaException}
        await publisher.publish_patiently("t", NewRecord(b"v"))
        await publisher.close()

    asyncio.run(run())
