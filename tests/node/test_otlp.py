"""A real node pushes to a collector that uses OpenTelemetry's own library."""

import asyncio
import gzip
import queue
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint, Metric
from tests.node.test_metrics import started

from ottla.node.config import load_config
from ottla.node.config_file import ConfigError
from ottla.node.serve_settings import ServeSettings

PATIENCE_S = 60


class Collector:
    """Refuses the first pushes on request, and keeps the others."""

    def __init__(self, refusals: int = 0) -> None:
        self.refusals = refusals
        self.received: queue.Queue[tuple[str, str, ExportMetricsServiceRequest]] = queue.Queue()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.refusals:
                    collector.refusals -= 1
                    self.send_error(503)
                    return
                request = ExportMetricsServiceRequest.FromString(gzip.decompress(body))
                collector.received.put((self.path, self.headers.get("X-Team", ""), request))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def push(self) -> tuple[str, str, ExportMetricsServiceRequest]:
        return self.received.get(timeout=PATIENCE_S)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def observe(collector: Collector, **settings: str) -> tuple[str, str, ExportMetricsServiceRequest]:
    async def run() -> tuple[str, str, ExportMetricsServiceRequest]:
        options = {"otlp.endpoint": collector.url, "otlp.interval.ms": "100", **settings}
        async with started(**options) as (client, _):
            await client.create_topic("orders", partitions=3)
            await client.produce("orders", b"lamp")
            loop = asyncio.get_running_loop()
            while True:
                pushed = await loop.run_in_executor(None, collector.push)
                if "Produce" in durations(pushed[2]):
                    return pushed

    return asyncio.run(run())


def metrics(request: ExportMetricsServiceRequest) -> dict[str, Metric]:
    return {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


def durations(request: ExportMetricsServiceRequest) -> dict[str, HistogramDataPoint]:
    """By API; a request is counted once its response is sent."""
    family = metrics(request).get("ottla_request_duration_seconds", Metric())
    points = family.histogram.data_points
    return {point.attributes[0].value.string_value: point for point in points}


def test_metrics_are_pushed_with_their_kinds_and_labels(collector: Collector) -> None:
    path, team, request = observe(
        collector, **{"otlp.headers": "x-team=a%20b,x-other=1", "metrics.port": "-1"}
    )
    assert (path, team) == ("/v1/metrics", "a b")
    found = metrics(request)
    total = found["ottla_topic_records_in_total"].sum
    assert (total.is_monotonic, total.aggregation_temporality) == (True, 2)
    (point,) = total.data_points
    assert (point.as_double, point.attributes[0].value.string_value) == (1, "orders")
    assert point.start_time_unix_nano < point.time_unix_nano
    assert found["ottla_brokers"].gauge.data_points
    assert found["process_resident_memory_bytes"].gauge.data_points[0].as_double > 0
    produced = durations(request)["Produce"]
    assert produced.count == sum(produced.bucket_counts) == 1
    assert len(produced.bucket_counts) == len(produced.explicit_bounds) + 1
    assert produced.sum > 0
    (resource,) = request.resource_metrics
    names = {
        attribute.key: attribute.value.string_value for attribute in resource.resource.attributes
    }
    assert names["service.name"] == "ottla"
    assert names["service.instance.id"] == "1"
    assert names["ottla.cluster.id"]


def test_a_collector_that_fails_is_tried_again(
    collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    collector.refusals = 2
    caplog.set_level("INFO", "ottla.node.metrics.otlp")
    observe(collector)
    failures = [record for record in caplog.records if "cannot be pushed" in record.message]
    assert len(failures) == 1


def test_the_names_of_opentelemetry_are_read_and_those_of_ottla_win() -> None:
    values = load_config(
        ServeSettings(),
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318",
            "OTEL_METRIC_EXPORT_INTERVAL": "1000",
            "OTTLA_OTLP_INTERVAL_MS": "2000",
        },
    )
    assert values["otlp.endpoint"] == "http://collector:4318"
    assert values["otlp.interval.ms"] == 2000
    with pytest.raises(ConfigError, match=r"otlp\.endpoint"):
        load_config(ServeSettings(), {"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"})
