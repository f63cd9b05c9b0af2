"""Serves the console: `GET /` leads to `/console/`, whose files are read once, at the start.

The page is plain HTML, CSS and JavaScript modules, as they stand in `static`. It calls only what
everyone can call (`/topics`, `/groups`, ...), so it needs no rights of its own and keeps no state.
Browsers may load nothing from elsewhere (Content-Security-Policy), and show it in no other page.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

ROOT: Final = "/console/"
STATIC: Final = Path(__file__).parent / "static"
_INDEX: Final = "index.html"
_MEDIA_TYPES: Final = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Cache-Control": "no-cache",  # The browser asks each time, and is mostly told: as before.
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def routes(_services: object) -> Sequence[BaseRoute]:
    """A family of routes, for an application that serves the HTTP API as well."""

    async def lead_here(_: Request) -> Response:
        return RedirectResponse(ROOT)

    return [
        Route("/", lead_here, methods=["GET"]),
        Route(ROOT.rstrip("/"), lead_here, methods=["GET"]),
        *(_file_route(path) for path in sorted(STATIC.rglob("*")) if path.is_file()),
    ]


def _file_route(path: Path) -> BaseRoute:
    name = path.relative_to(STATIC).as_posix()
    content = path.read_bytes()
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}

    async def answer(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, headers=headers, media_type=_MEDIA_TYPES[path.suffix])

    return Route(ROOT + ("" if name == _INDEX else name), answer, methods=["GET"])
