"""The OpenAPI document and the code have the same paths and methods."""

import asyncio
import re
from typing import Any

import pytest
import yaml
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute

from ottla.gateway.api.health import DESCRIPTION
from ottla.gateway.app import FAMILIES
from ottla.gateway.services import Services
from ottla.gateway.settings import GatewaySettings

METHODS = {"get", "put", "post", "delete", "patch"}


@pytest.fixture(scope="module")
def described() -> Any:
    return yaml.safe_load(DESCRIPTION.read_text())


def routes() -> set[tuple[str, str]]:
    async def build() -> list[BaseRoute]:
        settings = GatewaySettings("127.0.0.1:1")
        services = Services(settings, settings.access())
        try:
            return [route for family in FAMILIES for route in family(services)]
        finally:
            await services.close()

    return {pair for route in asyncio.run(build()) for pair in _pairs(route)}


def _pairs(route: BaseRoute) -> set[tuple[str, str]]:
    assert not isinstance(route, Mount), "routes are one flat table"
    if isinstance(route, WebSocketRoute):
        return {(_plain(route.path), "get")}
    assert isinstance(route, Route)
    methods = {method.lower() for method in route.methods or ()} & METHODS
    return {(_plain(route.path), method) for method in methods}


def _plain(path: str) -> str:
    """`{name:path}` is `{name}` in OpenAPI."""
    return re.sub(r"{(\w+):\w+}", r"{\1}", path)


def test_the_description_has_the_paths_of_the_code(described: Any) -> None:
    written = {
        (path, method)
        for path, item in described["paths"].items()
        for method in item.keys() & METHODS
    }
    assert sorted(written - routes()) == [], "described, and not there"
    assert sorted(routes() - written) == [], "there, and not described"


def test_operations_have_names_of_their_own(described: Any) -> None:
    names = [
        item[method]["operationId"]
        for item in described["paths"].values()
        for method in item.keys() & METHODS
    ]
    assert len(names) == len(set(names))
