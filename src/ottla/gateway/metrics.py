"""The gateway's metrics, for Prometheus. docs/http.md lists them."""

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from ottla.gateway.core.counts import Counts, Durations

# Histogram bounds in nanoseconds, as exponents of two, as in nodes: 0.26 ms to 17 s.
_BOUNDS: Final = (18, 20, 22, 24, 26, 28, 30, 32, 34)
_TOO_BUSY: Final = 429
_STREAM: Final = "/topics/{topic}/stream"


def registry_of(counts: Counts, *, with_process: bool) -> CollectorRegistry:
    """With or without process metrics."""
    registry = CollectorRegistry()
    if with_process:
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
    registry.register(_Collector(counts))
    return registry


class _Collector:
    """Computes the metrics whenever prometheus_client collects them."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield from self._requests()
        yield from self._records()
        yield from self._others()

    def _requests(self) -> Iterator[Metric]:
        labels = ["route", "method"]
        total = CounterMetricFamily(
            "ottla_gateway_requests",
            "Requests that were answered, by route and status.",
            labels=[*labels, "status"],
        )
        in_flight = GaugeMetricFamily(
            "ottla_gateway_requests_in_flight", "Requests under way.", labels=labels
        )
        durations = HistogramMetricFamily(
            "ottla_gateway_request_duration_seconds",
            "From the head of a request to the end of its response; a stream is one request.",
            labels=labels,
        )
        rejected = 0
        for names, route in sorted(self._counts.routes.items()):
            in_flight.add_metric(names, route.in_flight)
            durations.add_metric(names, *_histogram(route.durations))
            rejected += route.statuses[_TOO_BUSY]
            for status, count in sorted(route.statuses.items()):
                total.add_metric([*names, str(status)], count)
        yield total
        yield in_flight
        yield durations
        yield _counter("rejected", "Requests that hit a limit and got 429.", rejected)

    def _records(self) -> Iterator[Metric]:
        counts = self._counts
        yield _counter("published_records", "Records that brokers accepted.", counts.published)
        yield _counter("failed_records", "Records that brokers did not accept.", counts.unpublished)
        yield _counter("received_records", "Records handed out from queues.", counts.received)
        yield _labelled(
            "settled_records", "Deliveries settled, by what was said.", "verdict", counts.settled
        )
        queued = sum(each.queued_records for each in counts.publishers)
        yield _gauge("queued_records", "Published records that wait for brokers.", queued)
        size = sum(each.queued_bytes for each in counts.publishers)
        yield _gauge("queued_bytes", "Bytes of the records that wait for brokers.", size)

    def _others(self) -> Iterator[Metric]:
        counts = self._counts
        streams = counts.routes.get((_STREAM, "GET"))
        open_streams = streams.in_flight if streams else 0
        yield _gauge("streams", "Open streams of server-sent events.", open_streams)
        yield _gauge("websockets", "Open WebSockets.", counts.websockets)
        yield _labelled(
            "webhook_calls",
            "Calls to the URLs of subscriptions: a class of status, or failed without an answer.",
            "outcome",
            counts.webhook_calls,
        )
        yield _gauge("users", "Users that are logged in, with --auth.", counts.users)
        yield _counter(
            "logins_refused", "Requests whose user or password was wrong.", counts.logins_refused
        )


def _histogram(durations: Durations) -> tuple[list[tuple[str, float]], float]:
    counts = list(durations.counts)
    buckets = [(str(2**exponent / 1e9), float(sum(counts[: exponent + 1]))) for exponent in _BOUNDS]
    return [*buckets, ("+Inf", float(sum(counts)))], durations.total_ns / 1e9


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"ottla_gateway_{name}", text, value=value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"ottla_gateway_{name}", text, value=value)


def _labelled(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(f"ottla_gateway_{name}", text, labels=[label])
    for each, count in sorted(values.items()):
        family.add_metric([each], count)
    return family
