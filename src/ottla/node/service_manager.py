"""Reports the node's state to systemd, as in sd_notify(3); has no effect elsewhere."""

import asyncio
import os
import socket
from typing import Final

from ottla.node.readiness import Readiness

_LOOK_S: Final = 0.2


def notify(state: str) -> None:
    """No effect unless a service manager requests it."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as manager:
            manager.connect(address)
            manager.send(state.encode())
    except OSError:
        pass  # Not worth failing the node.


async def tell_when_ready(readiness: Readiness) -> None:
    """Returns once the node is ready; until then its status is what it waits for."""
    if "NOTIFY_SOCKET" not in os.environ:
        return
    loop = asyncio.get_running_loop()
    shown = ""
    while problem := await loop.run_in_executor(None, readiness.why_not_ready):
        if problem != shown:
            notify(f"STATUS={problem}")
        shown = problem
        await asyncio.sleep(_LOOK_S)
    notify("READY=1\nSTATUS=serving, all replicas in sync")
