from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.push_telemetry.v0.request import PushTelemetryRequest
from kio.static.primitive import i8, i32
from tests.kits.manual_clock import ManualClock

from ottla.controller.client_metrics import ClientDescription
from ottla.controller.image import CLIENT_METRICS_RESOURCE, MetadataImage
from ottla.controller.records import ConfigRecord
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.otlp import Sample
from ottla.runtime.client_metrics import SERIES_MAX, ClientMetrics, Instance

ID, OTHER_ID = UUID(int=7), UUID(int=8)


class Clients:
    """A broker's view of them, with a manual clock."""

    def __init__(self, clients_max: int = 10) -> None:
        self.clock = ManualClock()
        self.image = MetadataImage()
        self.known = ClientMetrics(self.image, self.clock, bytes_max=10, clients_max=clients_max)

    def subscribe(self, name: str = "all", **values: Any) -> None:
        for key, value in values.items():
            record = ConfigRecord(
                resource_type=CLIENT_METRICS_RESOURCE,
                resource_name=name,
                name=key.replace("_", "."),
                value=value,
            )
            self.image.replay(record)

    def describe(self, text: str) -> ClientDescription:
        return ClientDescription(text, "orders-1", "librdkafka", "2.16.0", "127.0.0.1", "5000")

    def get(self, instance_id: UUID = ID) -> Instance:
        return self.known.subscription(instance_id, self.describe)

    def push(
        self,
        *samples: Sample,
        instance_id: UUID = ID,
        subscription_id: int | None = None,
        terminating: bool = False,
        **fields: Any,
    ) -> None:
        if subscription_id is None:
            subscription_id = self.known._instance(instance_id, self.describe).subscription_id
        request = PushTelemetryRequest(
            client_instance_id=instance_id,
            subscription_id=i32(subscription_id),
            terminating=terminating,
            compression_type=i8(fields.get("codec", 0)),
            metrics=fields.get("metrics", b""),
        )
        instance = self.known.accept(instance_id, self.describe, request)
        self.known.keep(instance_id, "orders-1", instance, samples)


def refused(call: Callable[..., object], *arguments: Any, **keywords: Any) -> ErrorCode:
    with pytest.raises(ApiError) as caught:
        call(*arguments, **keywords)
    return caught.value.code


def gauge(name: str, value: int, **attributes: Any) -> Sample:
    return Sample(name, tuple(attributes.items()), value, is_monotonic=False, is_delta=False)


def counter(name: str, value: int) -> Sample:
    return Sample(name, (), value, is_monotonic=True, is_delta=True)


def test_a_client_that_no_subscription_matches_is_asked_for_nothing() -> None:
    clients = Clients()
    clients.subscribe(metrics="*", match="client_software_name=apache-kafka-java")
    assert clients.get().request == ((), 300_000)


def test_all_matching_subscriptions_count_and_the_shortest_interval() -> None:
    clients = Clients()
    clients.subscribe("a", metrics="producer.,consumer.", interval_ms="5000")
    clients.subscribe("b", metrics="consumer.", match="client_id=orders-.*,client_source_port=5.*")
    clients.subscribe("c", metrics="none.", match="client_id=orders")  # Only a part of the id.
    assert clients.get().request == (("consumer.", "producer."), 5_000)
    clients.subscribe("d", metrics="*")
    assert clients.get().request == (("*",), 5_000)


def test_a_subscription_has_another_id_for_another_client_and_other_metrics() -> None:
    clients = Clients()
    clients.subscribe(metrics="a.")
    first, other = clients.get().subscription_id, clients.get(OTHER_ID).subscription_id
    clients.subscribe(metrics="b.")
    assert len({first, other, clients.get().subscription_id}) == 3


def test_a_client_may_ask_once_in_its_interval_unless_it_was_told_to() -> None:
    clients = Clients()
    clients.subscribe(metrics="*", interval_ms="1000")
    clients.get()
    assert refused(clients.get) is ErrorCode.throttling_quota_exceeded
    clients.clock.advance(1000)
    clients.get()
    assert refused(clients.push, subscription_id=1) is ErrorCode.unknown_subscription_id
    clients.get()


def test_a_client_may_push_once_in_its_interval() -> None:
    clients = Clients()
    clients.subscribe(metrics="*", interval_ms="1000")
    clients.get()
    clients.push()
    assert refused(clients.push) is ErrorCode.throttling_quota_exceeded
    clients.clock.advance(999)
    assert refused(clients.push) is ErrorCode.throttling_quota_exceeded
    clients.push(terminating=True)
    clients.clock.advance(5000)
    assert refused(clients.push) is ErrorCode.invalid_request


def test_what_is_too_large_or_of_an_unknown_codec_is_refused() -> None:
    clients = Clients()
    clients.subscribe(metrics="*", interval_ms="100")
    assert refused(clients.push, metrics=bytes(11)) is ErrorCode.telemetry_too_large
    clients.clock.advance(100)
    assert refused(clients.push, codec=5) is ErrorCode.unsupported_compression_type
    clients.get()


def test_deltas_add_up_and_gauges_are_replaced() -> None:
    clients = Clients()
    clients.push(counter("sent", 2), gauge("queue", 5, node_id="1"), gauge("queue", 6))
    clients.clock.advance(300_000)
    clients.push(counter("sent", 3), gauge("queue", 1, node_id="1"))
    (shown,) = clients.known.shown()
    assert shown.counters == {("sent", ()): 5}
    assert shown.gauges == {("queue", (("node_id", "1"),)): 1, ("queue", ()): 6}


def test_clients_that_are_silent_or_gone_are_forgotten() -> None:
    clients = Clients()
    clients.push(gauge("a", 1))
    clients.push(gauge("a", 1), instance_id=OTHER_ID)
    clients.push(instance_id=OTHER_ID, terminating=True)
    assert [client.instance_id for client in clients.known.shown()] == ["AAAAAAAAAAAAAAAAAAAABw"]
    clients.clock.advance(900_000)
    assert clients.known.shown() == []
    clients.push(gauge("a", 1), instance_id=UUID(int=9))
    assert list(clients.known.pushed) == [UUID(int=9)]


def test_clients_and_series_are_bounded() -> None:
    clients = Clients(clients_max=1)
    clients.push(*(gauge(f"m{number}", 1) for number in range(SERIES_MAX + 5)))
    clients.push(gauge("a", 1), instance_id=OTHER_ID)
    (shown,) = clients.known.shown()
    assert len(shown.gauges) == SERIES_MAX
    assert clients.known.left_out_count == 1
