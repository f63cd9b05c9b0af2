"""`/subscriptions`: webhooks, which send records to a URL."""

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from ottla.gateway.api.bodies import read_object
from ottla.gateway.core.subscriptions import Subscription
from ottla.gateway.problems import Problem
from ottla.gateway.services import Services


def _refusals() -> Sequence[BaseRoute]:
    async def refuse(_: Request) -> Response:
        raise Problem(403, "Webhooks are delivered as the gateway's own user, who manages them.")

    methods = ["GET", "POST", "DELETE"]
    return [
        Route("/subscriptions", refuse, methods=methods),
        Route("/subscriptions/{id}", refuse, methods=methods),
    ]


def routes(services: Services) -> Sequence[BaseRoute]:
    webhooks = services.webhooks
    if webhooks is None:
        return _refusals()

    async def create(request: Request) -> Response:
        created = await webhooks.create(await read_object(request))
        location = {"Location": f"/subscriptions/{created.id}"}
        # The secret is shown only here.
        shown: dict[str, Any] = created.shown() | {"secret": created.secret}
        return JSONResponse(shown, status_code=201, headers=location)

    async def list_all(_: Request) -> Response:
        return JSONResponse({"subscriptions": [each.shown() for each in await webhooks.all()]})

    async def find(request: Request) -> Subscription:
        number = request.path_params["id"]
        found = await webhooks.get(number)
        if found is None:
            raise Problem(404, f"There is no subscription {number}.")
        return found

    async def get(request: Request) -> Response:
        return JSONResponse((await find(request)).shown())

    async def delete(request: Request) -> Response:
        await webhooks.delete((await find(request)).id)
        return Response(status_code=204)

    async def enable(request: Request) -> Response:
        return JSONResponse((await webhooks.enable(await find(request))).shown())

    return [
        Route("/subscriptions", create, methods=["POST"]),
        Route("/subscriptions", list_all, methods=["GET"]),
        Route("/subscriptions/{id}", get, methods=["GET"]),
        Route("/subscriptions/{id}", delete, methods=["DELETE"]),
        Route("/subscriptions/{id}:enable", enable, methods=["POST"]),
    ]
