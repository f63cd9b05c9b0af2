"""`GET /metrics`, for Prometheus: metrics of the gateway and of the node it runs beside."""

import asyncio
import logging
import urllib.request
from collections.abc import Sequence
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.problems import Problem
from ottla.gateway.services import Services

logger = logging.getLogger(__name__)

_NODE_TIMEOUT_S: Final = 8.0  # Scrapers time out after 10 seconds by default.
_PLAIN: Final = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def routes(services: Services) -> Sequence[BaseRoute]:
    registries: dict[bool, Any] = {}  # With and without process metrics.

    async def metrics(_: Request) -> Response:
        try:
            from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

            from ottla.gateway.metrics import registry_of
        except ImportError:
            raise Problem(
                501,
                "The library that writes metrics is not installed.",
                hint="Install it for the gateway: pip install 'ottla[metrics]'.",
            ) from None
        url = services.settings.node_metrics
        node = None if url is None else await asyncio.to_thread(_fetch, url)
        # A node reports process metrics itself; no metric may appear twice.
        with_process = node is None
        if with_process not in registries:
            registries[with_process] = registry_of(services.counts, with_process=with_process)
        page = (node or b"") + generate_latest(registries[with_process])
        return Response(page, media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("/metrics", metrics)]


def _fetch(url: str) -> bytes | None:
    """The node's metrics page; None if the node does not answer."""
    try:
        with _PLAIN.open(url, timeout=_NODE_TIMEOUT_S) as answer:
            return bytes(answer.read())
    except OSError as error:
        logger.warning("the metrics of the node at %s are left out: %s", url, error)
        return None
