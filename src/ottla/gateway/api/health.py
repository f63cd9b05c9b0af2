"""`GET /health`: the process is alive. `GET /ready`: its cluster answers. `GET /openapi.yaml`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.client.wire.errors import Unreachable, WireError
from ottla.gateway.problems import Problem
from ottla.gateway.services import Services

# Tests compare it with the routes.
DESCRIPTION: Final = Path(__file__).parents[1] / "openapi.yaml"

_ANSWER_S: Final = 5.0


def routes(services: Services) -> Sequence[BaseRoute]:
    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        if services.stopping.is_set():
            raise Problem(503, "The gateway is stopping.", retry_after_s=1)
        try:
            async with asyncio.timeout(_ANSWER_S):
                brokers = await services.cluster.broker_ids()
        except TimeoutError:
            raise Unreachable("no broker answered in time") from None
        except WireError as error:
            raise Unreachable(str(error)) from None
        return JSONResponse({"status": "ok", "brokers": brokers})

    description = DESCRIPTION.read_bytes()

    async def openapi(_: Request) -> Response:
        return Response(description, media_type="application/yaml")

    return [
        Route("/health", health),
        Route("/ready", ready),
        Route("/openapi.yaml", openapi),
    ]
