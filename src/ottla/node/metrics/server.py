"""`/metrics`, `/livez` and `/readyz` of a node, on a separate port, in threads beside the loop.

The port is open from the beginning of a start, so that a node which waits for others can report it.
"""

import logging
import socket
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote

from ottla.node.config import (
    METRICS_HOST,
    METRICS_PORT,
    OTLP_ENDPOINT,
    OTLP_HEADERS,
    OTLP_INTERVAL_MS,
)
from ottla.node.metrics.page import Page
from ottla.node.readiness import Phase, Readiness
from ottla.protocol.config import ConfigValues

if TYPE_CHECKING:
    from ottla.node.metrics.otlp import OtlpExporter

logger = logging.getLogger(__name__)

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
_TIMEOUT_S: Final = 10.0  # For a scraper that stalls.


def process_page() -> Callable[[], bytes]:
    """ValueError without the library."""
    try:
        from prometheus_client import (
            CollectorRegistry,
            GCCollector,
            PlatformCollector,
            ProcessCollector,
            generate_latest,
        )
    except ImportError as error:
        raise ValueError(
            f"metrics are turned on, but {error.name} is missing: pip install 'ottla[metrics]'"
        ) from error
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return lambda: generate_latest(registry)


def _require_otlp() -> None:
    try:
        import opentelemetry.proto  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"{OTLP_ENDPOINT.name} is set, but opentelemetry-proto is missing: "
            "pip install 'ottla[otel]'"
        ) from error


def _headers(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {unquote(key.strip()): unquote(value.strip()) for key, _, value in pairs}


class _Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    is_packed: bool = False  # With gzip.


class MetricsServer:
    """`page` is served once it is set. ValueError without the library."""

    def __init__(self, readiness: Readiness) -> None:
        self.process = process_page()
        self.page: Page | None = None
        self.port = 0
        self.url: str | None = None  # Of /metrics, for this machine; None without a port.
        self._readiness = readiness
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._exporter: OtlpExporter | None = None

    def open(self, values: ConfigValues) -> None:
        """OSError without a port, ValueError without a required library."""
        if values[OTLP_ENDPOINT]:
            _require_otlp()
        host, port = values[METRICS_HOST], values[METRICS_PORT]
        if port < 0:
            return
        try:
            self._server = server = _make_server(host, port, self._answer)
        except OSError as error:
            raise OSError(f"{METRICS_PORT.name} {port} of {host}: {error.strerror}") from error
        self.port = server.server_port
        reached = "localhost" if host in _EVERY_ADDRESS else host
        self.url = f"http://{f'[{reached}]' if ':' in reached else reached}:{self.port}/metrics"
        self._thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        logger.info("metrics are at http://%s:%d/metrics", host, self.port)

    def serve(self, page: Page, values: ConfigValues, resource: Mapping[str, str]) -> None:
        """Also push it, if configured; `resource` identifies the node to a collector."""
        self.page = page
        if values[OTLP_ENDPOINT]:
            from ottla.node.metrics.otlp import OtlpExporter

            self._exporter = OtlpExporter(
                page,
                values[OTLP_ENDPOINT],
                headers=_headers(values[OTLP_HEADERS]),
                interval_s=values[OTLP_INTERVAL_MS] / 1000,
                resource=resource,
            )
            self._exporter.start()

    def close(self) -> None:
        """Waits for a moment."""
        if self._exporter is not None:
            self._exporter.close()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def _answer(self, path: str, takes_gzip: bool) -> _Answer:
        if path == "/metrics":
            if self.page is None:
                return _health(str(Phase.STARTING.value))
            body = self.page.render(packed=takes_gzip)
            return _Answer(HTTPStatus.OK, body, is_packed=takes_gzip)
        if path == "/livez":
            return _health(self._readiness.why_not_alive())
        if path == "/readyz":
            return _health(self._readiness.why_not_ready())
        return _Answer(HTTPStatus.NOT_FOUND, b"there are /metrics, /livez and /readyz\n")


def _health(problem: str | None) -> _Answer:
    if problem is None:
        return _Answer(HTTPStatus.OK, b"ok\n")
    return _Answer(HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n".encode())


def _make_server(
    host: str, port: int, answer: Callable[[str, bool], _Answer]
) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            takes_gzip = "gzip" in self.headers.get("Accept-Encoding", "")
            status, body, is_packed = answer(self.path.partition("?")[0], takes_gzip)
            self.send_response(status)
            self.send_header("Content-Type", _CONTENT_TYPE)
            if is_packed:
                self.send_header("Content-Encoding", "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass  # A line for each scrape is of no use.

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = _family(host, port)

    return Server((host, port), Handler)


def _family(host: str, port: int) -> int:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
