"""Messages read and written. Test fixtures import this, so it imports nothing else of Ottla."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, Self

Headers = list[tuple[str, bytes | None]]

_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


class RecordMetadata(NamedTuple):
    """The partition and offset of a written record."""

    topic: str
    partition: int
    offset: int


class _Fields(NamedTuple):
    value: Any
    raw: Any


class Message(tuple[Any, Any]):
    """A record with its topic, partition and offset; `message["offset"]` is `message.offset`.

    `timestamp` is in milliseconds since 1970. `key` and `value` are deserialized. `raw` is
    confluent-kafka's message.
    """

    # One is created per record read, so it is as cheap as Python allows: a tuple of what
    # everybody needs plus the library's own message for the rest. It has no
    # `__new__`, unlike a named tuple, which would be called for each.
    __slots__ = ()

    value: Any = _Fields.value
    raw: Any = _Fields.raw

    deserialize_key: ClassVar[Callable[[bytes], Any] | None] = None

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int,
        key: Any,
        value: Any,
        headers: Headers,
    ) -> Self:
        """Create a message that no consumer has read."""
        return cls((value, _Stored(topic, partition, offset, timestamp, key, headers)))

    @property
    def topic(self) -> str:
        topic: str = self.raw.topic()
        return topic

    @property
    def partition(self) -> int:
        partition: int = self.raw.partition()
        return partition

    @property
    def offset(self) -> int:
        offset: int = self.raw.offset()
        return offset

    @property
    def timestamp(self) -> int:
        timestamp: int = self.raw.timestamp()[1]
        return timestamp

    @property
    def key(self) -> Any:
        key = self.raw.key()
        deserialize = type(self).deserialize_key
        return key if deserialize is None or key is None else deserialize(key)

    @property
    def headers(self) -> Headers:
        return self.raw.headers() or []

    @property
    def delivery_count(self) -> int:
        """How often a share group has delivered it, including this time."""
        return self.raw.delivery_count() or 1

    def header(self, name: str) -> bytes | None:
        """The last header with this name, or None."""
        return next((value for key, value in reversed(self.headers) if key == name), None)

    def __getitem__(self, field: Any) -> Any:
        if field not in _FIELDS:
            raise KeyError(field)
        return getattr(self, field)

    def keys(self) -> tuple[str, ...]:
        """Makes `dict(message)` work."""
        return _FIELDS

    def __iter__(self) -> Iterator[Any]:
        return iter(_FIELDS)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and all(
            getattr(self, field) == getattr(other, field) for field in _FIELDS
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        source = f"{self.topic}-{self.partition}@{self.offset}"
        return f"Message({source}, key={self.key!r}, value={self.value!r})"


class _Stored(NamedTuple):
    """Has the interface of a confluent-kafka message."""

    topic_name: str
    partition_number: int
    offset_number: int
    timestamp_ms: int
    key_content: Any
    header_list: Headers

    def topic(self) -> str:
        return self.topic_name

    def partition(self) -> int:
        return self.partition_number

    def offset(self) -> int:
        return self.offset_number

    def timestamp(self) -> tuple[int, int]:
        return 1, self.timestamp_ms

    def key(self) -> Any:
        return self.key_content

    def headers(self) -> Headers:
        return self.header_list

    def delivery_count(self) -> int:
        return 1
