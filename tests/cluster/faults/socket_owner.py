"""Finds the process that has connected, for encrypted connections.

It asks the kernel for the socket of one connection (sock_diag(7)): the table of all sockets has
thousands of lines on a busy machine, and reading it takes too long.
"""

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

_SOCK_DIAG: Final = 4  # The family of netlink.
_BY_FAMILY: Final = 20
_IS_REQUEST: Final = 1
_ANY: Final = 0xFFFFFFFF
_HEAD: Final = struct.Struct("=IHHII")
_REQUEST: Final = struct.Struct("=BBBBI")
_CONNECTION: Final = struct.Struct("!HH4s12x4s12x")
_COOKIE: Final = struct.Struct("=III")
_INODE_POSITION: Final = 84

Address = tuple[str, int]


def owner_of(client: Address, server: Address, processes: Iterable[int]) -> int | None:
    """The one of these processes that has the client end of a local connection."""
    inode = _inode(client, server)
    wanted = f"socket:[{inode}]"
    return next((pid for pid in processes if _has(pid, wanted)), None) if inode else None


def _inode(client: Address, server: Address) -> int:
    """0 if the connection no longer exists, or the kernel does not say."""
    body = _REQUEST.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, _ANY)
    hosts = (socket.inet_aton(client[0]), socket.inet_aton(server[0]))
    body += _CONNECTION.pack(client[1], server[1], *hosts) + _COOKIE.pack(0, _ANY, _ANY)
    head = _HEAD.pack(_HEAD.size + len(body), _BY_FAMILY, _IS_REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as asked:
            asked.send(head + body)
            answer = asked.recv(4096)
    except OSError:
        return 0
    if _HEAD.unpack_from(answer)[1] != _BY_FAMILY:
        return 0
    inode: int = struct.unpack_from("=I", answer, _INODE_POSITION)[0]
    return inode


def _has(pid: int, wanted: str) -> bool:
    with suppress(OSError):  # It may have just exited.
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if str(descriptor.readlink()) == wanted:
                    return True
    return False
