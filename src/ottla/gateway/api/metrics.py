"""`GET /metrics`, for Prometheus."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.problems import Problem
from ottla.gateway.services import Services


def routes(services: Services) -> Sequence[BaseRoute]:
    async def metrics(_: Request) -> Response:
        try:
            from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

            registry = services.collector.registry()
        except ImportError:
            raise Problem(
                501,
                "The library that writes metrics is not installed.",
                hint="Install it for the gateway: pip install 'ottla[metrics]'.",
            ) from None
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return [Route("/metrics", metrics)]
