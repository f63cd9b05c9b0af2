"""What has arrived of a frame before it is dispatched: bytes while it is little, then a LargeFrame.

Bytes may also be several frames, which wait because the session is halted; then these functions
tell of the first.
"""

import struct

from ottla.network.large_frame import LargeFrame

SIZE_BYTES = 4
KEY_BYTES = 2  # A frame begins with the key of its API.

Partial = bytes | LargeFrame

unpack_size = struct.Struct(">I").unpack_from
unpack_key = struct.Struct(">h").unpack_from


def arrived_bytes(partial: Partial) -> int:
    return len(partial) if isinstance(partial, bytes) else partial.arrived


def missing_bytes(partial: Partial) -> int:
    """At least 1, also if not even the size is there."""
    if not isinstance(partial, bytes):
        total = partial.total
    elif len(partial) >= SIZE_BYTES:
        total = SIZE_BYTES + unpack_size(partial)[0]
    else:
        total = SIZE_BYTES
    return max(total - arrived_bytes(partial), 1)


def api_key(partial: Partial) -> int | None:
    """None if it is not there yet."""
    if arrived_bytes(partial) < SIZE_BYTES + KEY_BYTES:
        return None
    content = partial if isinstance(partial, bytes) else partial.buffer
    (key,) = unpack_key(content, SIZE_BYTES)
    return int(key)
