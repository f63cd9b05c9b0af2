"""Wire primitives, parsed in place from a frame and packed by hand.

Readers take a frame and a position and return the value and the position after it. A frame that
ends too early causes IndexError or struct.error, which the entry points (`parse_*`) turn into
ProtocolError; lengths are checked against the frame before anything is sliced or counted.
"""

import struct
from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from ottla.protocol.errors import ProtocolError

K = TypeVar("K")
V = TypeVar("V")

# Errors of a reader on a frame that is too short, or contains a string that is not UTF-8.
MALFORMED = (IndexError, struct.error, UnicodeDecodeError)

ZERO_UUID = UUID(int=0)

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_unpack_uuid = struct.Struct(">16s").unpack_from
read_int16 = _INT16.unpack_from
read_int32 = _INT32.unpack_from
_TAGGED_FIELDS_MAX = 1000
ITEMS_MAX = 500_000  # Items of all arrays in one message.


class Cache(dict[K, V]):
    """Caches computed values, up to `size_max` keys; then it starts over.

    A hit is one dictionary lookup.
    """

    __slots__ = ("_compute", "_size_max")

    def __init__(self, compute: Callable[[K], V], size_max: int = 10_000) -> None:
        super().__init__()
        self._compute = compute
        self._size_max = size_max

    def __missing__(self, key: K) -> V:
        if len(self) >= self._size_max:
            self.clear()
        value = self[key] = self._compute(key)
        return value


_STRING_BYTES_CACHED = 256  # Longer strings are not names of topics or clients.


def _decode(data: bytes) -> str:
    return data.decode()


def _decode_uuid(data: bytes) -> UUID | None:
    """Zero stands for none."""
    return UUID(bytes=data) if any(data) else None


decoded_strings: Cache[bytes, str] = Cache(_decode)
decoded_uuids: Cache[bytes, UUID | None] = Cache(_decode_uuid)


def uvarint(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))


def legacy_string(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return _INT16.pack(len(data)) + data


def compact_string(text: str | None) -> bytes:
    if text is None:
        return b"\x00"
    data = text.encode()
    return uvarint(len(data) + 1) + data


legacy_names: Cache[str, bytes] = Cache(legacy_string)
compact_names: Cache[str, bytes] = Cache(compact_string)


def encode_count(count: int, flexible: bool) -> bytes:
    """The length of an array that is not null."""
    return uvarint(count + 1) if flexible else _INT32.pack(count)


def uuid_bytes(value: UUID | None) -> bytes:
    return ZERO_UUID.bytes if value is None else value.bytes


def read_uvarint(frame: memoryview, position: int) -> tuple[int, int]:
    value = frame[position]
    position += 1
    if value < 0x80:
        return value, position
    value &= 0x7F
    for shift in (7, 14, 21, 28):
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise ProtocolError("a variable-length number has more than 5 bytes")


def read_text(frame: memoryview, position: int, size: int) -> str:
    end = position + size
    if end > len(frame):
        raise ProtocolError(f"a string of {size} bytes reaches past the frame")
    data = bytes(frame[position:end])
    return decoded_strings[data] if size <= _STRING_BYTES_CACHED else data.decode()


def read_legacy_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    (size,) = read_int16(frame, position)
    position += 2
    if size < 0:
        return None, position
    return read_text(frame, position, size), position + size


def read_compact_string(frame: memoryview, position: int) -> tuple[str | None, int]:
    size = frame[position]
    end = position + size
    if 0 < size < 0x80 and end <= len(frame):
        return decoded_strings[bytes(frame[position + 1 : end])], end
    size, position = read_uvarint(frame, position)
    if size == 0:
        return None, position
    size -= 1
    return read_text(frame, position, size), position + size


def read_string(frame: memoryview, position: int, flexible: bool) -> tuple[str, int]:
    """A string that may not be null."""
    reader = read_compact_string if flexible else read_legacy_string
    text, position = reader(frame, position)
    if text is None:
        raise ProtocolError("null where a string must be")
    return text, position


def read_uuid(frame: memoryview, position: int) -> tuple[UUID | None, int]:
    (data,) = _unpack_uuid(frame, position)
    return decoded_uuids[data], position + 16


def read_count(frame: memoryview, position: int, flexible: bool) -> tuple[int, int]:
    """The length of an array that may not be null.

    Items take at least a byte each, so a count above the remaining bytes is invalid.
    """
    if flexible:
        count = frame[position] - 1
        position += 1
        if count >= 0x7F:
            count, position = read_uvarint(frame, position - 1)
            count -= 1
    else:
        (count,) = read_int32(frame, position)
        position += 4
    if not 0 <= count <= min(len(frame) - position, ITEMS_MAX):
        raise ProtocolError(f"an array of {count} items in {len(frame) - position} bytes")
    return count, position


def validate_items(count: int) -> None:
    """The arrays of one message together have no more items than one array may have."""
    if count > ITEMS_MAX:
        raise ProtocolError(f"{count} items in one message")


def read_tags(frame: memoryview, position: int) -> tuple[list[tuple[int, int, int]], int]:
    """Tagged fields as (tag, start, end), sorted; the caller reads their bytes."""
    count, position = read_uvarint(frame, position)
    if count > _TAGGED_FIELDS_MAX:
        raise ProtocolError(f"{count} tagged fields")
    tags: list[tuple[int, int, int]] = []
    last_tag = -1
    for _ in range(count):
        tag, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        end = position + size
        if end > len(frame):
            raise ProtocolError(f"a tagged field of {size} bytes reaches past the frame")
        if tag <= last_tag:
            raise ProtocolError(f"tagged field {tag} after {last_tag}")
        tags.append((tag, position, end))
        last_tag = tag
        position = end
    return tags, position


def skip_tags(frame: memoryview, position: int) -> int:
    if frame[position] == 0:
        return position + 1
    return read_tags(frame, position)[1]
