"""Request bodies: bytes, JSON, and objects with named, typed members."""

import json
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.requests import ClientDisconnect, Request

from ottla.gateway.core.errors import Invalid

STREAMS: Final = "ottla.streams"
_BODY: Final = "ottla.body"


def read_stream(request: Request) -> None:
    """Lift the limit on the body: the route reads it in pieces and limits each piece."""
    request.scope[STREAMS] = True


async def read_body(request: Request) -> bytes:
    """The whole body, also when called again. It usually arrives in one message."""
    body: bytes | None = request.scope.get(_BODY)
    if body is not None:
        return body
    message = await request.receive()
    body = message.get("body", b"")
    if message.get("more_body"):
        parts = [body]
        while message.get("more_body"):
            message = await request.receive()
            parts.append(message.get("body", b""))
        body = b"".join(parts)
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    request.scope[_BODY] = body
    return body


async def read_json(request: Request) -> Any:
    """Keeps numbers exact, however large, unlike faster parsers."""
    try:
        return json.loads(await read_body(request))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the body is not JSON: {error}") from None


async def read_object(request: Request) -> dict[str, Any]:
    """An empty body is an empty object."""
    return _object(await read_json(request) if await read_body(request) else {})


async def read_command(request: Request) -> dict[str, Any]:
    """Like `read_object`, for bodies without numbers too large for a fast parser."""
    body = await read_body(request)
    try:
        return _object(orjson.loads(body) if body else {})
    except ValueError as error:
        raise Invalid(f"the body is not JSON: {error}") from None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid("the body is not a JSON object")
    return value


class Fields:
    """Members of an object, each read by name and type."""

    def __init__(self, members: Mapping[str, Any], *, from_text: bool = False) -> None:
        """`from_text`: numbers are written as text, as in a query string."""
        self._members = members
        self._from_text = from_text
        self._asked: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._members)

    def text(self, name: str) -> str:
        value = self._get(name)
        if not isinstance(value, str):
            raise Invalid(f"{name} must be a string")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        value = self._get(name)
        if value is None and default is not None:
            return default
        if self._from_text and isinstance(value, str) and _is_integer(value):
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            raise Invalid(f"{name} must be an integer")
        if not -(2**31) <= value < 2**63:
            raise Invalid(f"{name} is out of range")
        return value

    def flag(self, name: str) -> bool:
        value = self._get(name)
        if value is not None and not isinstance(value, bool):
            raise Invalid(f"{name} must be true or false")
        return bool(value)

    def mapping(self, name: str) -> dict[str, Any]:
        value = self._get(name)
        if value is not None and not isinstance(value, dict):
            raise Invalid(f"{name} must be an object")
        return value or {}

    def validate_all_known(self, *others: str) -> None:
        """Refuse members that were neither read nor named in `others`."""
        unknown = self._members.keys() - self._asked - set(others)
        if unknown:
            raise Invalid(f"{', '.join(sorted(unknown))} is not known here")

    def _get(self, name: str) -> Any:
        self._asked.add(name)
        return self._members.get(name)


def _is_integer(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()
