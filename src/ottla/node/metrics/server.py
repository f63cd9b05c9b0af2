"""`/metrics` of a node, on a port of its own, in threads beside the event loop."""

import gzip
import logging
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, NamedTuple

from ottla.node.config import METRICS_PORT
from ottla.node.metrics.page import Page

logger = logging.getLogger(__name__)

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


class MetricsServer(NamedTuple):
    port: int
    stop: Callable[[], None]  # Waits for a moment.


def serve(host: str, port: int, page: Page) -> MetricsServer:
    """OSError without a port."""
    from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_S

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND, "there is /metrics")
                return
            body = page.render()
            is_packed = "gzip" in self.headers.get("Accept-Encoding", "")
            if is_packed:
                body = gzip.compress(body, compresslevel=1)
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE_PLAIN_0_0_4)
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

    try:
        server = Server((host, port), Handler)
    except OSError as error:
        raise OSError(f"{METRICS_PORT.name} {port} of {host}: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    logger.info("metrics are at http://%s:%d/metrics", host, server.server_port)
    return MetricsServer(server.server_port, stop)


def _family(host: str, port: int) -> int:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
