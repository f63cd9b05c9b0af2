"""What a secured listener does to a session."""

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.network.session import Session


class Gate(Protocol):
    """Precedes the dispatcher."""

    def dispatch(self, session: "Session", frame: memoryview) -> None: ...


class SessionSecurity(Protocol):
    """How a listener authenticates clients."""

    def on_connected(self, session: "Session", transport: asyncio.Transport) -> None: ...
