"""One connection as handlers see it: requests come in, responses leave in request order.

Frames are handed to `dispatch` as they are received (see `receiver`). There is no task, queue or
future per request. While it handles a frame, dispatch does one of:

    session.send_now(data)   the whole answer is here
    session.reply()          keeps its place in the order; `Reply.send` or `skip` follows later
    nothing                  the request has no answer (acks=0)

Responses of one receive callback, or of one turn of the event loop, leave in one write.

Requests take effect in order, as in Kafka. One without a response yet holds back those behind it,
except for the APIs that it lets overtake it (`reply(overtakers)`). Only requests whose effects are
indistinguishable may overtake each other.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.network.answers import NOBODY, Answers, Overtakers, Reply
from ottla.network.receiver import Receiver
from ottla.network.session_hub import Hub, logger
from ottla.security.authorizer import Access
from ottla.security.client_quotas import SessionQuotas
from ottla.security.principal import ANONYMOUS

if TYPE_CHECKING:
    from ottla.network.listener_security import ListenerSecurity

__all__ = ["NOBODY", "Overtakers", "Reply", "Session"]


class Session:
    __slots__ = (
        "_answers",
        "_hub",
        "_on_close",
        "_on_half_closed",
        "_security",
        "_transport",
        "access",
        "api",
        "attachment",
        "client_id",
        "client_software_name",
        "client_software_version",
        "closed",
        "connected",
        "frame_size",
        "is_token_authenticated",
        "listener_name",
        "may_act_as_node",
        "peer_address",
        "peer_port",
        "principal",
        "quotas",
        "receiver",
    )

    def __init__(
        self,
        hub: Hub,
        listener_name: str,
        peer: tuple[str, int],
        security: "ListenerSecurity | None" = None,
    ) -> None:
        self.listener_name = listener_name
        self.peer_address, self.peer_port = peer
        self.receiver: Receiver  # Once it is connected.
        self.closed = False  # Nothing is received or sent any more.
        self.connected = False  # It was, at some time.
        # For the handlers; unused by the session.
        self.client_id: str | None = None
        self.client_software_name: str | None = None
        self.client_software_version: str | None = None
        self.principal = ANONYMOUS
        self.is_token_authenticated = False  # It logged in with a delegation token.
        self.access: Access | None = None  # What the principal may do, once requested.
        self.may_act_as_node = True  # Until a listener with authentication says otherwise.
        self.attachment: object | None = None
        self.quotas: SessionQuotas | None = None  # As of its last counted request.
        # Of the frame being dispatched.
        self.api = hub.unnamed_api
        self.frame_size = 0

        self._hub = hub
        self._security = security
        self._transport: asyncio.Transport
        self._answers: Answers
        self._on_close: dict[Callable[[Session], None], None] = {}  # In order of arrival.
        self._on_half_closed: Callable[[Session], None] | None = None

    def on_connected(
        self, receiver: Receiver, transport: asyncio.Transport, answers: Answers
    ) -> None:
        self.connected = True
        self.receiver = receiver
        self._transport = transport
        self._answers = answers
        self._hub.add(self)
        if self._security is not None:
            self._security.on_connected(self, transport)

    def on_connection_lost(self) -> None:
        self._end()
        self._hub.remove(self)
        callbacks, self._on_close = self._on_close, {}
        for callback in callbacks:
            callback(self)

    def on_half_closed(self) -> None:
        if self._on_half_closed is not None:
            self._on_half_closed(self)

    def reply(self, overtakers: Overtakers = NOBODY) -> Reply:
        """Take the next place in the order of responses, for the frame being dispatched.

        Until the response is sent, only frames of the APIs in `overtakers` are dispatched.
        """
        return self._answers.reply(self.frame_size, overtakers, self.api)

    def send_now(self, data: bytes) -> None:
        """Answer the frame being dispatched: the same as `reply().send([data])`."""
        answers = self._answers
        if answers.pending:
            answers.reply(self.frame_size, answers.overtakers, self.api).send((data,))
        else:
            answers.send_now(data, self.api)

    def close(self, reason: str) -> None:
        """Close once the transport has sent what it has; what waits for a slow peer is lost."""
        if self.closed:
            return
        logger.debug("closing %s: %s", self, reason)
        self._answers.flush()
        self._end()
        self._transport.close()

    def abort(self, reason: str) -> None:
        """Close at once; what has not left is lost."""
        logger.debug("aborting %s: %s", self, reason)
        self._end()
        self._transport.abort()

    def call_on_close(self, callback: Callable[["Session"], None]) -> None:
        """`callback` is called once, when the connection has ended for whatever reason."""
        self._on_close[callback] = None

    def call_on_half_closed(self, callback: Callable[["Session"], None]) -> None:
        """`callback` is called when the peer closes its half: usually it is gone."""
        self._on_half_closed = callback

    def forget_on_close(self, callback: Callable[["Session"], None]) -> None:
        """Remove the callback, if it was registered."""
        self._on_close.pop(callback, None)

    def _end(self) -> None:
        """The transport may still have bytes to send."""
        if not self.closed:
            self.closed = True
            self.receiver.end()

    def __repr__(self) -> str:
        client = f" ({self.client_id})" if self.client_id else ""
        return f"{self.peer_address}:{self.peer_port}{client} on {self.listener_name}"
