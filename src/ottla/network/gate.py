"""What a listener with a lock does to a session."""

import asyncio
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.network.session import Session


class Gate(Protocol):
    """Stands before the dispatcher."""

    def dispatch(self, session: "Session", frame: memoryview) -> None: ...


class SessionSecurity(Protocol):
    """How a listener comes to know who is there."""

    def on_connected(self, session: "Session", transport: asyncio.Transport) -> None: ...
