"""What requests say beside their bodies, and bodies that are JSON."""

import json
from typing import Any, Final

from starlette.requests import Request

from ottla.gateway.core.errors import Invalid

STREAMS: Final = "ottla.streams"

_NUMBER_DIGITS_MAX: Final = 19
_PARAMETERS: Final = "ottla.parameters"
_PREFIX: Final = b"ottla-"


def read_stream(request: Request) -> None:
    """Lift the bound on the body: the route reads it bit by bit, and bounds each bit."""
    request.scope[STREAMS] = True


async def read_json(request: Request) -> Any:
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the body is not JSON: {error}") from None


async def read_object(
    request: Request, *, required: set[str], optional: set[str]
) -> dict[str, Any]:
    """A JSON object with these members and no others; null is as good as missing."""
    body = await read_json(request)
    if not isinstance(body, dict):
        raise Invalid("the body is not a JSON object")
    if missing := required - body.keys():
        raise Invalid(f"the body needs {', '.join(sorted(missing))}")
    if unknown := body.keys() - required - optional:
        raise Invalid(f"nothing here is called {', '.join(sorted(unknown))}")
    return body


def text(request: Request, name: str) -> str | None:
    """By query (`name`) or by header (`Ottla-Name`, but `Deliver-At` and `Deliver-After`)."""
    found = request.scope.get(_PARAMETERS)
    if found is None:
        found = request.scope[_PARAMETERS] = _parameters(request)
    value: str | None = found.get(name)
    return value


def _parameters(request: Request) -> dict[str, str]:
    """Looked up once for each request: one header after the other costs more than to publish."""
    found = {
        name.removeprefix(_PREFIX).decode("latin-1"): value.decode("latin-1")
        for name, value in request.scope["headers"]
        if name.startswith((_PREFIX, b"deliver-"))
    }
    if request.scope["query_string"]:
        found |= request.query_params
    return found


def number(request: Request, name: str, *, maximum: int, minimum: int = 0) -> int | None:
    """From the minimum to the maximum, by query or header."""
    value = text(request, name)
    return None if value is None else parse_number(value, name, maximum=maximum, minimum=minimum)


def parse_number(value: str, name: str, *, maximum: int, minimum: int = 0) -> int:
    is_number = value.isascii() and value.isdecimal() and len(value) <= _NUMBER_DIGITS_MAX
    if not is_number or not minimum <= int(value) <= maximum:
        raise Invalid(f"{name} is a whole number from {minimum} to {maximum}")
    return int(value)


def topic_name(request: Request) -> str:
    name: str = request.path_params["topic"]
    return name
