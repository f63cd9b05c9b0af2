"""The sockets that a gateway listens on."""

import errno
import socket
from typing import Final

_BACKLOG: Final = 2048


class CannotListen(Exception):
    """The message tells the person starting the gateway why."""


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, reuse_port=False)
    except OSError as error:
        written = f"[{host}]" if ":" in host else host
        raise CannotListen(f"{written}:{port}: {_explain(error, host, port)}") from error


def _explain(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} is in use by another process"
        case errno.EACCES:
            return f"this user may not bind port {port}"
        case errno.EADDRNOTAVAIL:
            return f"{host} is not an address of this machine"
    return str(error.strerror or error).lower()
