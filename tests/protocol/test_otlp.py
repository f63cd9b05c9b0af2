"""Written with OpenTelemetry's own library, read with our reader."""

from typing import Any

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_DELTA,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)

from ottla.protocol.errors import ProtocolError
from ottla.protocol.otlp import Sample, read_samples


def attribute(key: str, **value: Any) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(**value))


def written(*metrics: Metric) -> bytes:
    scope = ScopeMetrics(metrics=metrics)
    data = MetricsData(resource_metrics=[ResourceMetrics(scope_metrics=[scope])])
    return bytes(data.SerializeToString())


GAUGE = Metric(
    name="org.apache.kafka.producer.record.queue.time.avg",
    description="a text",
    unit="1",
    gauge=Gauge(
        data_points=[
            NumberDataPoint(
                time_unix_nano=1,
                as_double=-2.5,
                attributes=[
                    attribute("node_id", int_value=1),
                    attribute("is_up", bool_value=True),
                    attribute("broker", string_value="ä"),
                ],
            ),
            NumberDataPoint(time_unix_nano=1),
        ]
    ),
)
SUM = Metric(
    name="connection.creation.total",
    sum=Sum(
        aggregation_temporality=AGGREGATION_TEMPORALITY_DELTA,
        is_monotonic=True,
        data_points=[NumberDataPoint(as_int=-(2**62), flags=1)],
    ),
)
OTHER = Metric(name="h", histogram=Histogram(data_points=[HistogramDataPoint(count=1)]))


def test_gauges_and_sums_are_read_and_what_is_neither_is_passed_over() -> None:
    labels = (("broker", "ä"), ("is_up", "1"), ("node_id", "1"))
    assert list(read_samples(written(GAUGE, OTHER, SUM))) == [
        Sample(GAUGE.name, labels, -2.5, is_monotonic=False, is_delta=False),
        Sample(SUM.name, (), -(2**62), is_monotonic=True, is_delta=True),
    ]


def test_metrics_that_end_too_early_are_refused() -> None:
    whole = written(GAUGE, SUM)
    for size in range(1, len(whole)):
        with pytest.raises(ProtocolError):
            list(read_samples(whole[:size]))


@pytest.mark.parametrize(
    "data",
    [
        b"\x08\x01",  # A number where a message belongs.
        b"\x0a\x01",
        b"\x0b",
        b"\xff" * 20,
        b"\x0a\x06\x12\x04\x12\x02\x0a\xff",
        b"\x0a\x07\x12\x05\x12\x03\x0a\x01\xff",  # A name that is not UTF-8.
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(read_samples(data))
