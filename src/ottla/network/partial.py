"""What has arrived of a frame before it is dispatched: a few bytes, or a LargeFrame.

Bytes may also be several frames, which wait because the session is halted; then these functions
refer to the first one.
"""

import struct

from ottla.network.large_frame import LargeFrame

SIZE_BYTES = 4
KEY_BYTES = 2  # A frame begins with its API key.

Partial = bytes | LargeFrame

unpack_size = struct.Struct(">I").unpack_from
unpack_key = struct.Struct(">h").unpack_from


def arrived_bytes(partial: Partial) -> int:
    return len(partial) if isinstance(partial, bytes) else partial.arrived


def missing_bytes(partial: Partial) -> int:
    """At least 1, even if the size itself is incomplete."""
    if not isinstance(partial, bytes):
        total = partial.total
    elif len(partial) >= SIZE_BYTES:
        total = SIZE_BYTES + unpack_size(partial)[0]
    else:
        total = SIZE_BYTES
    return max(total - arrived_bytes(partial), 1)


def api_key(partial: Partial) -> int | None:
    """None if it has not arrived yet."""
    if arrived_bytes(partial) < SIZE_BYTES + KEY_BYTES:
        return None
    content = partial if isinstance(partial, bytes) else partial.buffer
    (key,) = unpack_key(content, SIZE_BYTES)
    return int(key)
