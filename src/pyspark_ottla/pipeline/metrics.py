"""A pipeline's metrics, served to Prometheus over HTTP."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from pyspark_ottla.pipeline.progress import Progress, QueryProgress

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Metric(NamedTuple):
    name: str
    kind: str
    text: str


_METRICS = (
    (_Metric("running", "gauge", "1 while the query runs."), "is_running"),
    (_Metric("batches_total", "counter", "Micro-batches."), "batches"),
    (_Metric("rows_in_total", "counter", "Rows read from the sources."), "rows_in"),
    (_Metric("rows_out_total", "counter", "Rows given to the sink."), "rows_out"),
    (_Metric("rows_in_per_second", "gauge", "In the last batch."), "rows_in_per_s"),
    (_Metric("rows_out_per_second", "gauge", "In the last batch."), "rows_out_per_s"),
    (_Metric("batch_duration_seconds", "gauge", "Of the last batch."), "batch_seconds"),
    (_Metric("batch_seconds_total", "counter", "Time in micro-batches."), "batches_seconds"),
    (_Metric("last_batch_timestamp_seconds", "gauge", "When the last batch began."), "batch_at"),
    (_Metric("restarts_total", "counter", "Times that the query was started again."), "restarts"),
    (_Metric("lag_records", "gauge", "Records in the topics that were not read."), "lag"),
    (_Metric("state_rows", "gauge", "Rows in the state of the steps."), "state_rows"),
    (_Metric("state_bytes", "gauge", "Memory of the state of the steps."), "state_bytes"),
)
_REFUSED = _Metric("rows_refused_total", "counter", "Rows that are not as expected.")
_FAILED = _Metric("failed", "gauge", "1 after the query failed.")


def render(progress: Progress) -> str:
    """In the Prometheus text format."""
    return "".join(f"{line}\n" for line in _lines(progress))


def _lines(progress: Progress) -> Iterator[str]:
    queries = list(progress.queries.values())
    for metric, attribute in _METRICS:
        yield from _head(metric)
        for query in queries:
            yield _sample(metric, progress, query, float(getattr(query, attribute)))
    yield from _head(_FAILED)
    for query in queries:
        yield _sample(_FAILED, progress, query, float(bool(query.error)))
    yield from _head(_REFUSED)
    for query in queries:
        for name, count in query.refused.items():
            dataset, _, expectation = name.partition(".")
            labels = f',dataset="{dataset}",expectation="{expectation}"'
            yield _sample(_REFUSED, progress, query, float(count), labels)


def _head(metric: _Metric) -> Iterator[str]:
    yield f"# HELP ottla_pipeline_{metric.name} {metric.text}"
    yield f"# TYPE ottla_pipeline_{metric.name} {metric.kind}"


def _sample(
    metric: _Metric, progress: Progress, query: QueryProgress, value: float, labels: str = ""
) -> str:
    own = f'pipeline="{progress.pipeline}",sink="{query.name}"{labels}'
    return f"ottla_pipeline_{metric.name}{{{own}}} {value:.15g}"


class MetricsServer:
    """Serves /metrics on a port until closed; port 0 picks a free one."""

    def __init__(self, host: str, port: int, progress: Progress) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404, "there is /metrics")
                    return
                body = render(progress).encode()
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Requests are not logged."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
