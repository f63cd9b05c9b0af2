"""The leader's address, for a client that sent its Produce or Fetch elsewhere (KIP-951)."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.wire_primitives import compact_string, uvarint

_INT32 = struct.Struct(">i")
_LEADER = struct.Struct(">iiB")


class Leader(NamedTuple):
    leader_id: int
    leader_epoch: int


class NodeEndpoint(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None


NO_LEADER = Leader(-1, -1)


def encode_leader(leader: Leader) -> bytes:
    return _LEADER.pack(leader.leader_id, leader.leader_epoch, 0)


def encode_node_endpoints(endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The tagged fields at the end of a response."""
    if not endpoints:
        return b"\x00"
    body = bytearray(uvarint(len(endpoints) + 1))
    for node_id, host, port, rack in endpoints:
        body += _INT32.pack(node_id) + compact_string(host)
        body += _INT32.pack(port) + compact_string(rack) + b"\x00"
    return b"\x01\x00" + uvarint(len(body)) + body
