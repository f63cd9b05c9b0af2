"""The console's files as the gateway serves them, without a browser."""

import asyncio
import re
from pathlib import Path

import httpx
from starlette.applications import Starlette

from ottla.console import pages


def get(path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=pages.routes(None)))
        async with httpx.AsyncClient(transport=transport, base_url="http://console") as client:
            return await client.get(path, headers=headers)

    return asyncio.run(ask())


def static_files() -> list[Path]:
    return [path for path in pages.STATIC.rglob("*") if path.is_file()]


def test_the_root_leads_to_the_page() -> None:
    for path in ("/", "/console"):
        answer = get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, "/console/")


def test_every_file_is_served_with_its_type() -> None:
    types = {}
    for path in static_files():
        name = path.relative_to(pages.STATIC).as_posix()
        answer = get(f"/console/{'' if name == 'index.html' else name}")
        assert answer.content == path.read_bytes()
        types[path.suffix] = answer.headers["content-type"].partition(";")[0]
    assert types[".js"] == "text/javascript"
    assert types[".html"] == "text/html"


def test_a_browser_may_load_nothing_from_elsewhere() -> None:
    assert "default-src 'self'" in get("/console/").headers["content-security-policy"]
    for path in static_files():
        urls = set(re.findall(r"https?://[^\"'\s]+", path.read_text()))
        assert urls <= {"http://www.w3.org/2000/svg"}, path


def test_a_file_that_the_browser_has_is_not_sent_again() -> None:
    tag = get("/console/main.js").headers["etag"]
    again = get("/console/main.js", {"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


def test_what_is_no_file_is_not_found() -> None:
    for name in ("nothing.js", "../pages.py", "%2e%2e/pages.py"):
        assert get(f"/console/{name}").status_code == 404
