"""JSON bodies of requests: objects whose members have names and types."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request

from ottla.gateway.core.errors import Invalid


async def json_object(request: Request) -> dict[str, Any]:
    """An empty body is an empty object."""
    body = await request.body()
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Invalid("the body is not valid JSON") from None
    if not isinstance(value, dict):
        raise Invalid("the body is not a JSON object")
    return value


class Fields:
    """Members of an object; each is asked for by its name and type."""

    def __init__(self, members: Mapping[str, Any], *, from_text: bool = False) -> None:
        """`from_text`: numbers are written as text, as in a query."""
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

    def validate_all_known(self) -> None:
        unknown = self._members.keys() - self._asked
        if unknown:
            raise Invalid(f"{', '.join(sorted(unknown))} is not known here")

    def _get(self, name: str) -> Any:
        self._asked.add(name)
        return self._members.get(name)


def _is_integer(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()
