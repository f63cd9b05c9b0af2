"""A request for every API and version that the broker serves, with a value in every field."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple
from uuid import UUID

from kio.serial._introspect import EntityField, EntityTupleField, classify_field
from tests.clients.requests import batch, milliseconds
from tests.clients.versions import request_type
from tests.kits.raw_requests import request_frame, with_size

from ottla.handlers.table import API_TABLE

NAME = "fuzzed"  # The name of everything: topics, groups, members, keys.

_VALUES: dict[str, Any] = {
    "bool": False,
    "int8": 0,
    "int16": 1,
    "uint16": 1,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": NAME,
    "bytes": b"\0\0",
    "records": batch(b"value"),
    "uuid": UUID(int=5),
    "error_code": 0,
    "timedelta_i32": milliseconds(1),
    "timedelta_i64": milliseconds(1),
}


class SampleFrame(NamedTuple):
    api_name: str
    version: int
    body: bytes  # Without its size.

    @property
    def frame(self) -> bytes:
        return with_size(self.body)


def sample_frames() -> Iterator[SampleFrame]:
    for api in API_TABLE.values():
        for version in range(api.low, api.high + 1):
            yield SampleFrame(api.name, version, _body(request_type(api.key, version)))


def _body(entity_type: Any) -> bytes:
    return request_frame(_sample(entity_type), 1, NAME)[4:]


def _sample(entity_type: Any) -> Any:
    return entity_type(**{field.name: _value(field) for field in fields(entity_type)})


def _value(field: Any) -> Any:
    kind = classify_field(field)
    if isinstance(kind, EntityField | EntityTupleField):
        value = _sample(kind.type_)
    else:
        value = _VALUES[field.metadata["kafka_type"]]
    return (value,) if kind.is_array else value
