"""Pushes the metrics page to a collector by OTLP: protobuf over HTTP, periodically.

The page is parsed with Prometheus' own parser, a few lines at a time, so that the event loop is not
held up. A failed push is not repeated: the next one has the same counters, further on. While the
collector fails, pushes are less frequent, each at a random time in a longer interval.
"""

import gzip
import http.client
import logging
import random
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TextIO, cast

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AGGREGATION_TEMPORALITY_CUMULATIVE,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from prometheus_client import Metric as Family
from prometheus_client.parser import text_fd_to_metric_families
from prometheus_client.samples import Sample

from ottla import __version__
from ottla.node.metrics.page import Page

logger = logging.getLogger(__name__)

PATH: Final = "/v1/metrics"
POINTS_MAX: Final = 2_000  # Per request, or slightly more.
_TIMEOUT_S: Final = 10.0
_BACKOFF_MAX: Final = 16  # Intervals.
_LINES_AT_A_TIME: Final = 50
_PAUSE_S: Final = 0.000_05
_CLOSE_S: Final = 1.0

Labels = tuple[tuple[str, str], ...]


class OtlpExporter:
    """`resource` identifies the node. Stops with the process, or when it is closed."""

    def __init__(
        self,
        page: Page,
        endpoint: str,
        *,
        headers: Mapping[str, str],
        interval_s: float,
        resource: Mapping[str, str],
    ) -> None:
        self._page = page
        self._url = endpoint.rstrip("/") + PATH
        self._headers = dict(headers)
        self._interval_s = interval_s
        self._resource = Resource(attributes=_attributes(tuple(resource.items())))
        self._since_ns = time.time_ns()
        self._failures = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="otlp", daemon=True)

    def start(self) -> None:
        self._thread.start()
        logger.info("metrics are pushed to %s every %g s", self._url, self._interval_s)

    def close(self) -> None:
        """Does not wait for an unresponsive collector."""
        self._closed.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closed.wait(self._wait_s()):
            try:
                for request in self._requests():
                    self._push(request)
            except (OSError, http.client.HTTPException) as error:
                self._on_failure(error)
            else:
                self._on_success()

    def _wait_s(self) -> float:
        longer = min(2**self._failures, _BACKOFF_MAX)
        return self._interval_s * (1 if longer == 1 else random.uniform(1, longer))

    def _on_failure(self, error: Exception) -> None:
        if not self._failures:
            logger.warning("metrics cannot be pushed to %s: %s", self._url, error)
        self._failures += 1

    def _on_success(self) -> None:
        if self._failures:
            logger.info("metrics are pushed to %s again", self._url)
        self._failures = 0

    def _push(self, request: ExportMetricsServiceRequest) -> None:
        headers = {
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
            "User-Agent": f"ottla/{__version__}",
            **self._headers,
        }
        body = gzip.compress(request.SerializeToString(), compresslevel=1)
        push = urllib.request.Request(self._url, body, headers)
        with urllib.request.urlopen(push, timeout=_TIMEOUT_S) as answer:
            answer.read(POINTS_MAX)

    def _requests(self) -> Iterator[ExportMetricsServiceRequest]:
        """Split into requests so that each stays small."""
        now_ns, metrics, count = time.time_ns(), [], 0
        for family in text_fd_to_metric_families(cast("TextIO", self._lines())):
            for metric, points in _metrics(family, self._since_ns, now_ns):
                metrics.append(metric)
                count += points
                if count >= POINTS_MAX:
                    yield self._request(metrics)
                    metrics, count = [], 0
        if metrics:
            yield self._request(metrics)

    def _request(self, metrics: Sequence[Metric]) -> ExportMetricsServiceRequest:
        scope = ScopeMetrics(
            scope=InstrumentationScope(name="ottla", version=__version__), metrics=metrics
        )
        resource = ResourceMetrics(resource=self._resource, scope_metrics=[scope])
        return ExportMetricsServiceRequest(resource_metrics=[resource])

    def _lines(self) -> Iterator[str]:
        for chunk in self._page.chunks():
            for number, line in enumerate(chunk.decode().splitlines()):
                if number % _LINES_AT_A_TIME == 0:
                    time.sleep(_PAUSE_S)
                yield line


def _metrics(family: Family, since_ns: int, now_ns: int) -> Iterator[tuple[Metric, int]]:
    """With the number of its points; a family with many points is split."""
    if family.type == "histogram":
        points = list(_histograms(family.samples, since_ns, now_ns))
        histogram = Histogram(
            data_points=points, aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE
        )
        yield _metric(family, family.name, histogram=histogram), len(points)
        return
    for start in range(0, len(family.samples), POINTS_MAX):
        samples = family.samples[start : start + POINTS_MAX]
        points = [_point(sample, since_ns, now_ns) for sample in samples]
        name = samples[0].name
        if family.type == "counter":
            total = Sum(
                data_points=points,
                aggregation_temporality=AGGREGATION_TEMPORALITY_CUMULATIVE,
                is_monotonic=True,
            )
            yield _metric(family, name, sum=total), len(points)
        else:
            yield _metric(family, name, gauge=Gauge(data_points=points)), len(points)


def _metric(family: Family, name: str, **data: Any) -> Metric:
    return Metric(name=name, description=family.documentation, **data)


def _point(sample: Sample, since_ns: int, now_ns: int) -> NumberDataPoint:
    return NumberDataPoint(
        attributes=_attributes(tuple(sample.labels.items())),
        start_time_unix_nano=since_ns,
        time_unix_nano=now_ns,
        as_double=sample.value,
    )


def _histograms(
    samples: Sequence[Sample], since_ns: int, now_ns: int
) -> Iterator[HistogramDataPoint]:
    """Prometheus counts up to a bound, OpenTelemetry between two bounds."""
    buckets: defaultdict[Labels, list[tuple[float, int]]] = defaultdict(list)
    sums: dict[Labels, float] = {}
    for sample in samples:
        labels = {key: value for key, value in sample.labels.items() if key != "le"}
        own = tuple(labels.items())
        if sample.name.endswith("_bucket"):
            buckets[own].append((float(sample.labels["le"]), int(sample.value)))
        elif sample.name.endswith("_sum"):
            sums[own] = sample.value
    for own, counts in buckets.items():
        counts.sort()
        cumulative = [0, *(count for _, count in counts)]
        yield HistogramDataPoint(
            attributes=_attributes(own),
            start_time_unix_nano=since_ns,
            time_unix_nano=now_ns,
            count=cumulative[-1],
            sum=sums.get(own, 0.0),
            bucket_counts=[later - earlier for earlier, later in pairwise(cumulative)],
            explicit_bounds=[bound for bound, _ in counts[:-1]],
        )


def _attributes(pairs: Labels) -> list[KeyValue]:
    return [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in pairs]
