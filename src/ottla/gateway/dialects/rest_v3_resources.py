"""Resource forms shared across API v3."""

import json
from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from ottla.gateway.core.administration import Administration, Config
from ottla.gateway.dialects.rest_errors import Handler, RestError, answering

MEDIA_TYPE: Final = "application/json"


def answer(content: Any, status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type=MEDIA_TYPE)


def answering_for(administration: Administration) -> Callable[[Handler], Handler]:
    """Wraps handlers: they are called for this cluster only, and errors have the proxy's form."""

    def wrap(handler: Handler) -> Handler:
        async def handle(request: Request) -> Response:
            asked = request.path_params.get("cluster")
            if asked is not None and asked != (await administration.cluster()).id:
                raise RestError(404, 404, f"Cluster {asked} cannot be found.")
            return await handler(request)

        return answering(handle, MEDIA_TYPE)

    return wrap


def resource(request: Request, kind: str, path: str, **members: Any) -> dict[str, Any]:
    """The path is within the cluster that the request names."""
    cluster = request.path_params["cluster"]
    metadata = {"self": url(request, f"/v3/clusters/{cluster}{path}")}
    return {"kind": kind, "metadata": metadata, "cluster_id": cluster, **members}


def related(request: Request, path: str) -> dict[str, str]:
    return {"related": url(request, f"/v3/clusters/{request.path_params['cluster']}{path}")}


def listed(request: Request, kind: str, data: list[dict[str, Any]]) -> Response:
    metadata = {"self": url(request, request.url.path), "next": None}
    return answer({"kind": kind, "metadata": metadata, "data": data})


def url(request: Request, path: str) -> str:
    return f"{request.url.scheme}://{request.headers.get('host', 'localhost')}{path}"


def config_of(
    request: Request, kind: str, path: str, config: Config, **owner: Any
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
