"""What consumers are given."""

from collections.abc import Iterator
from typing import Any

Headers = list[tuple[str, bytes | None]]

_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class Message:
    """A record with its place; `message.offset` and `message["offset"]` are the same.

    `timestamp` is in milliseconds since 1970. `key` and `value` are what the deserializers made of
    the bytes.
    """

    __slots__ = _FIELDS

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: Any,
        value: Any,
        headers: Headers,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __getitem__(self, field: str) -> Any:
        if field not in _FIELDS:
            raise KeyError(field)
        return getattr(self, field)

    def keys(self) -> tuple[str, ...]:
        """With this, `dict(message)` works."""
        return _FIELDS

    def __iter__(self) -> Iterator[str]:
        return iter(_FIELDS)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in _FIELDS)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        place = f"{self.topic}-{self.partition}@{self.offset}"
        return f"Message({place}, key={self.key!r}, value={self.value!r})"
