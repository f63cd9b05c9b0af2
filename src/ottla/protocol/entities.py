"""`@entity`: a frozen dataclass with slots and keyword-only fields, like kio's messages."""

from collections.abc import Mapping
from dataclasses import field
from typing import TypeVar, dataclass_transform

from ottla.protocol.lazy_dataclass import dataclass

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def entity(cls: type[T]) -> type[T]:
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def wire(kafka_type: str, **rest: int) -> Mapping[str, object]:
    """Field metadata: the type, and `since`, `until` and `tag` where they apply."""
    return {"kafka_type": kafka_type, **rest}
