"""What consumers say in the protocol metadata of JoinGroup, as far as the coordinator reads it."""

import struct
from collections.abc import Iterable

_VERSION = struct.Struct(">h")
_COUNT = struct.Struct(">i")
_LENGTH = struct.Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics that the members subscribe to, None when one of them cannot be read."""
    try:
        return frozenset(topic for data in subscriptions for topic in _topics(data))
    except (struct.error, UnicodeDecodeError, ValueError):
        return None


def _topics(data: bytes) -> list[str]:
    """Every version starts with its number and the array of topic names."""
    (version,) = _VERSION.unpack_from(data)
    (count,) = _COUNT.unpack_from(data, _VERSION.size)
    position = _VERSION.size + _COUNT.size
    if version < 0 or not 0 <= count <= (len(data) - position) // _LENGTH.size:
        raise ValueError("not a subscription")
    topics = []
    for _ in range(count):
        (length,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if not 0 <= length <= len(data) - position:
            raise ValueError("not a subscription")
        topics.append(data[position : position + length].decode())
        position += length
    return topics
