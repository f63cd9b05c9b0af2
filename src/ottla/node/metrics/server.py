"""`/metrics`, `/livez` and `/readyz` of a node, on a port of its own, in threads beside the loop.

The port is open from the beginning of a start, so that a node which waits for others can say so.
"""

import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

from ottla.node.config import METRICS_PORT
from ottla.node.metrics.page import Page
from ottla.node.readiness import Phase, Readiness

logger = logging.getLogger(__name__)

_CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_TIMEOUT_S: Final = 10.0  # Of a scraper that does not go on.


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
            f"{METRICS_PORT.name} is set, but {error.name} is missing: pip install 'ottla[metrics]'"
        ) from error
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return lambda: generate_latest(registry)


class _Answer(NamedTuple):
    status: HTTPStatus
    body: bytes
    is_packed: bool = False  # As gzip does.


class MetricsServer:
    """`page` is served once it is set. ValueError without the library."""

    def __init__(self, readiness: Readiness) -> None:
        self.process = process_page()
        self.page: Page | None = None
        self.port = 0
        self._readiness = readiness
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    def open(self, host: str, port: int) -> None:
        """OSError without a port."""
        try:
            self._server = server = _make_server(host, port, self._answer)
        except OSError as error:
            raise OSError(f"{METRICS_PORT.name} {port} of {host}: {error.strerror}") from error
        self.port = server.server_port
        self._thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        logger.info("metrics are at http://%s:%d/metrics", host, self.port)

    def close(self) -> None:
        """Waits for a moment."""
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
            pass  # A line for each scrape tells nobody anything.

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        address_family = _family(host, port)

    return Server((host, port), Handler)


def _family(host: str, port: int) -> int:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
