"""Resource forms shared across API v3."""

import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ottla.gateway.core.administration import Administration, Config
from ottla.gateway.dialects.rest_errors import RestError

MEDIA_TYPE: Final = "application/json"


def answer(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type=MEDIA_TYPE)


def resource(request: Request, kind: str, path: str, **members: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"self": url(request, path)}, **members}


def listed(request: Request, kind: str, data: list[dict[str, Any]]) -> Response:
    metadata = {"self": url(request, request.url.path), "next": None}
    return answer({"kind": kind, "metadata": metadata, "data": data})


def url(request: Request, path: str) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{path}"


async def cluster_id(request: Request, administration: Administration) -> str:
    found = (await administration.cluster()).id
    if request.path_params["cluster"] != found:
        raise RestError(404, 404, f"Cluster {request.path_params['cluster']} cannot be found.")
    return found


def config_of(
    request: Request, kind: str, path: str, owner: Mapping[str, Any], config: Config
) -> dict[str, Any]:
    return resource(
        request,
        kind,
        f"{path}/configs/{config.name}",
        **owner,
        name=config.name,
        value=config.value,
        is_default=config.is_default,
        is_read_only=config.is_read_only,
        is_sensitive=config.is_sensitive,
        source=config.source,
        synonyms=[],
    )


def named_config(request: Request, configs: list[dict[str, Any]]) -> Response:
    """The config that the request names."""
    name = request.path_params["name"]
    for config in configs:
        if config["name"] == name:
            return answer(config)
    raise RestError(404, 404, f"Config {name} cannot be found.")
