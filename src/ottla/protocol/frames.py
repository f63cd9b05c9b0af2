"""Frame headers: the header of a request, and what precedes the body of a response.

A frame is 4 bytes of size and then the header and body of one message. Requests have header version
1, or 2 from the first flexible version of their API on; responses 0 and 1 likewise, except
ApiVersions, whose responses always have 0 so that any client can read them.
"""

import struct
from typing import NamedTuple

from ottla.protocol.errors import ProtocolError
from ottla.protocol.wire_primitives import MALFORMED, read_text, skip_tags

API_VERSIONS_KEY = 18

# API keys by the first flexible version (KIP-482); the others never are.
_FLEXIBLE = {
    0: (45, 46, 50, 51, 52, *range(55, 93), 10_000, 10_001, 10_002),
    1: (27, 44, 48, 49, 53, 54),
    2: (21, 22, 29, 30, 31, *range(33, 44)),
    3: (10, 16, 18, 24, 25, 26, 28),
    4: (12, 13, 14, 20, 23, 32),
    5: (15, 19),
    6: (2, 9, 11),
    8: (8,),
    9: (0, 3),
    12: (1,),
}
FLEXIBLE_FROM = {key: version for version, keys in _FLEXIBLE.items() for key in keys}
_NEVER = 1 << 15

_HEADER = struct.Struct(">hhih")
_HEADER_SIZE = _HEADER.size
_unpack_header = _HEADER.unpack_from
_RESPONSE_HEADER = struct.Struct(">i")
_new_tuple = tuple.__new__


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int  # Where the body starts in the frame.


def is_flexible(api_key: int, api_version: int) -> bool:
    return api_version >= FLEXIBLE_FROM.get(api_key, _NEVER)


def parse_request_header(frame: memoryview) -> RequestHeader:
    """The frame is without its size. An unknown API is parsed as if not flexible."""
    try:
        api_key, api_version, correlation_id, size = _unpack_header(frame)
        position = _HEADER_SIZE
        if size < 0:
            client_id = None
        else:
            client_id = read_text(frame, position, size)
            position += size
        if api_version >= FLEXIBLE_FROM.get(api_key, _NEVER):
            position = skip_tags(frame, position)
    except MALFORMED:
        raise ProtocolError(f"a request header is cut short in a frame of {len(frame)}") from None
    return _new_tuple(RequestHeader, (api_key, api_version, correlation_id, client_id, position))


def request_prefix(
    api_key: int, api_version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """The header of a request."""
    # The client id stays a legacy string in flexible headers too, so that any broker can read it.
    data = b"" if client_id is None else client_id.encode()
    size = -1 if client_id is None else len(data)
    tags = b"\x00" if is_flexible(api_key, api_version) else b""
    return _HEADER.pack(api_key, api_version, correlation_id, size) + data + tags


def response_prefix(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """The header of a response."""
    if is_flexible(api_key, api_version) and api_key != API_VERSIONS_KEY:
        return _RESPONSE_HEADER.pack(correlation_id) + b"\x00"
    return _RESPONSE_HEADER.pack(correlation_id)
