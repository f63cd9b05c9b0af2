"""What consumers of the classic protocol embed in JoinGroup and SyncGroup.

Subscriptions and assignments have a small format of their own, written by the clients: a version,
then fields to which later versions only append. It comes from clients, so nothing is trusted.
"""

import struct
from collections.abc import Iterable, Mapping

from ottla.protocol.lazy_dataclass import dataclass

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")

Partitions = Mapping[str, tuple[int, ...]]  # By topic name.

_OWNED_PARTITIONS_SINCE = 1
_GENERATION_SINCE = 2
_RACK_SINCE = 3


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    version: int
    topics: tuple[str, ...]
    owned_partitions: Partitions
    rack_id: str | None


def parse_subscription(data: bytes) -> MemberSubscription:
    """Raises ValueError if the data is not a subscription."""
    reader = _Reader(data)
    version = reader.version()
    topics = tuple(reader.text() for _ in range(reader.count(_INT16.size)))
    if version < _OWNED_PARTITIONS_SINCE:
        return MemberSubscription(version, topics, {}, None)
    reader.skip_bytes()
    owned = reader.partitions()
    if version >= _GENERATION_SINCE:
        reader.integer(_INT32)
    rack_id = reader.nullable_text() if version >= _RACK_SINCE else None
    return MemberSubscription(version, topics, owned, rack_id)


def parse_assignment(data: bytes) -> Partitions:
    """Raises ValueError if the data is not an assignment; no data means an empty one."""
    if not data:
        return {}
    reader = _Reader(data)
    reader.version()
    return reader.partitions()


def write_assignment(version: int, partitions: Partitions) -> bytes:
    parts = [_INT16.pack(version), _INT32.pack(len(partitions))]
    for topic, indexes in sorted(partitions.items()):
        name = topic.encode()
        parts.append(_INT16.pack(len(name)) + name + _INT32.pack(len(indexes)))
        parts.extend(map(_INT32.pack, sorted(indexes)))
    parts.append(_INT32.pack(-1))  # No user data.
    return b"".join(parts)


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that the members subscribe to; None if one of them cannot be parsed."""
    topics: set[str] = set()
    try:
        for data in subscriptions:
            reader = _Reader(data)
            reader.version()
            topics.update(reader.text() for _ in range(reader.count(_INT16.size)))
    except ValueError:
        return None
    return frozenset(topics)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def integer(self, kind: struct.Struct) -> int:
        if len(self._data) - self._position < kind.size:
            raise ValueError("the data ends too early")
        value: int = kind.unpack_from(self._data, self._position)[0]
        self._position += kind.size
        return value

    def version(self) -> int:
        version = self.integer(_INT16)
        if version < 0:
            raise ValueError(f"version {version}")
        return version

    def count(self, item_size_min: int) -> int:
        """The number of items that follow, each of at least that many bytes."""
        count = self.integer(_INT32)
        if not 0 <= count <= (len(self._data) - self._position) // item_size_min:
            raise ValueError(f"{count} items do not fit")
        return count

    def text(self) -> str:
        text = self.nullable_text()
        if text is None:
            raise ValueError("a name is missing")
        return text

    def nullable_text(self) -> str | None:
        size = self.integer(_INT16)
        return None if size == -1 else self._bytes(size).decode()

    def skip_bytes(self) -> None:
        size = self.integer(_INT32)
        if size != -1:
            self._bytes(size)

    def _bytes(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self._position:
            raise ValueError(f"{size} bytes do not fit")
        self._position += size
        return self._data[self._position - size : self._position]

    def partitions(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        for _ in range(self.count(_INT16.size + _INT32.size)):
            topic = self.text()
            found[topic] = tuple(self.integer(_INT32) for _ in range(self.count(_INT32.size)))
        return found
