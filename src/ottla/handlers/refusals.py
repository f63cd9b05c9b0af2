"""Responses that reject a whole request."""

from typing import Any, TypeVar, cast

from ottla.protocol.codec import newest_response_type
from ottla.protocol.errors import ApiError
from ottla.protocol.schema import schema_of

E = TypeVar("E")


def error_response(request: Any, error: ApiError) -> object:
    """For APIs whose handler has none of its own: a top-level error, and defaults."""
    return refused(newest_response_type(request.__api_key__), error)


def refused(entity_type: type[E], error: ApiError, **values: object) -> E:
    """An entity with the error and `values`; every other field has its schema default."""
    known = {field.name: field.default for field in schema_of(cast("type", entity_type))}
    told = {"error_code": error.code, "error_message": error.message}
    known.update((name, value) for name, value in told.items() if name in known)
    return entity_type(**(known | values))
