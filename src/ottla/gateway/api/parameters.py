"""Request parameters outside the body."""

from typing import Final

from starlette.requests import Request

from ottla.gateway.core.errors import Invalid

HEADERS: Final = "ottla.headers"  # Request headers by name; the ASGI scope has them as a list.

_NUMBER_DIGITS_MAX: Final = 19
_PARAMETERS: Final = "ottla.parameters"
_PREFIX: Final = b"ottla-"


def text(request: Request, name: str) -> str | None:
    """From the query (`name`) or a header (`Ottla-Name`, but `Deliver-At` and `Deliver-After`)."""
    return parameters(request).get(name)


def header(request: Request, name: bytes) -> bytes | None:
    value: bytes | None = request.scope[HEADERS].get(name)
    return value


def parameters(request: Request) -> dict[str, str]:
    """Collected once per request: looking up each header would cost more than publishing."""
    found: dict[str, str] | None = request.scope.get(_PARAMETERS)
    if found is None:
        found = request.scope[_PARAMETERS] = _parameters(request)
    return found


def _parameters(request: Request) -> dict[str, str]:
    found = {
        name.removeprefix(_PREFIX).decode("latin-1"): value.decode("latin-1")
        for name, value in request.scope["headers"]
        if name.startswith((_PREFIX, b"deliver-"))
    }
    if request.scope["query_string"]:
        found |= request.query_params
    return found


def number(request: Request, name: str, *, maximum: int, minimum: int = 0) -> int | None:
    """From the query or a header; between minimum and maximum."""
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
