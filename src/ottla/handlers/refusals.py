"""Responses that reject a whole request."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from ottla.protocol.errors import ApiError
from ottla.protocol.schema import schema_of

R = TypeVar("R")


def refuse_with(response_type: type[R], *, echo: tuple[str, ...] = ()) -> Callable[..., R]:
    """An `error_response` with a top-level error; `echo` names fields copied from the request.

    Every other field has its schema default.
    """

    def error_response(request: Any, error: ApiError, /) -> R:
        values = {field.name: field.default for field in schema_of(cast("type", response_type))}
        values.update((name, getattr(request, name)) for name in echo)
        values["error_code"] = error.code
        if "error_message" in values:
            values["error_message"] = error.message
        return response_type(**values)

    return error_response
