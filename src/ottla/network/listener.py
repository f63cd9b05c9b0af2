"""One named listener: its sockets, and the connections that it accepts.

A listener may have several sockets: IPv4 and IPv6 for all interfaces, and both loopback addresses
for `localhost`. They share one port.
"""

import asyncio
import errno
import socket
from collections.abc import Callable
from functools import partial

from ottla.network.endpoints import Endpoint
from ottla.network.listener_security import ListenerSecurity
from ottla.network.receiver import Receiver
from ottla.network.session import Session
from ottla.network.session_hub import Hub, logger
from ottla.security.quotas import CONNECTION_CREATION_RATE

KEEPALIVE_IDLE_S = 60
KEEPALIVE_INTERVAL_S = 10
KEEPALIVE_PROBES = 6
ACCEPTS_PER_TURN = 64
ACCEPT_RETRY_S = 1.0
HELD_MAX = 1_000  # Connections beyond the rate, held before they are closed.
FREE_PORT_ATTEMPTS = 10
_OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


NewSocket = Callable[[socket.AddressFamily], socket.socket]  # For TCP.
_Open = Callable[[str, int], socket.socket]  # One that listens on an address and a port.


class ListenError(OSError):
    """The broker cannot listen there; the message is one sentence for the operator."""


class Listener:
    def __init__(
        self,
        hub: Hub,
        endpoint: Endpoint,
        security: ListenerSecurity | None = None,
        new_socket: NewSocket = socket.socket,
    ) -> None:
        self.endpoint = endpoint  # After `bind`, with the port that was bound.
        self._hub = hub
        self._security = security  # None: no authentication and no encryption.
        self._new_socket = new_socket
        self._sockets: list[socket.socket] = []
        # Invariant: a plain connection's task is not cancelled, because then the transport would
        # close without telling its session. It ends by itself in the next turn.
        self._opening: dict[asyncio.Task[None], None] = {}
        self._held: dict[socket.socket, asyncio.TimerHandle] = {}
        self._stopping = False

    async def bind(self) -> None:
        """From now on clients can connect; they wait until `start`. Raises ListenError."""
        open_socket = partial(_bind_one, self._new_socket, self._hub.config.listen_backlog)
        self._sockets = _bind(self.endpoint, await _resolve(self.endpoint), open_socket)
        self.endpoint = self.endpoint._replace(port=self._sockets[0].getsockname()[1])

    def start(self) -> None:
        for listening in self._sockets:
            self._hub.loop.add_reader(listening.fileno(), self._accept, listening)

    async def stop(self) -> None:
        """Accept no more. Open connections stay."""
        self._stopping = True
        for listening in self._sockets:
            self._hub.loop.remove_reader(listening.fileno())
            listening.close()
        self._sockets = []
        for held in list(self._held):
            self._let_go(held)
        if self._security is not None and self._security.contexts is not None:
            for task in self._opening:
                task.cancel()
        if self._opening:
            await asyncio.wait(self._opening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_accept_error(listening, error)
                return
            pause_ms = self._hub.rates.pause_ms()
            self._admit(accepted, address[0], address[1])
            if pause_ms:
                self._hub.counters.accept_pauses += 1
                self._look_away(listening, pause_ms / 1000)
                return

    def _look_away(self, listening: socket.socket, time_s: float) -> None:
        self._hub.loop.remove_reader(listening.fileno())
        self._hub.loop.call_later(time_s, self._accept_again, listening)

    def _on_accept_error(self, listening: socket.socket, error: OSError) -> None:
        """Without free file descriptors the socket stays readable, so ignore it for a while."""
        self._hub.counters.refuse("accept failed")
        self._hub.quiet_log.warn_rarely(
            "accept", "cannot accept a connection on %s: %s", self.endpoint, error
        )
        if error.errno in _OUT_OF_RESOURCES:
            self._look_away(listening, ACCEPT_RETRY_S)

    def _accept_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._hub.loop.add_reader(listening.fileno(), self._accept, listening)

    def _admit(self, accepted: socket.socket, address: str, port: int) -> None:
        hub = self._hub
        held_ms = hub.rates.throttle_ms(address)
        reason = CONNECTION_CREATION_RATE if held_ms else hub.limits.admit(address)
        if reason:
            hub.counters.refuse(reason)
            hub.quiet_log.warn_rarely(reason, "refused a connection from %s: %s", address, reason)
            if held_ms and len(self._held) < HELD_MAX:
                self._held[accepted] = hub.loop.call_later(held_ms / 1000, self._let_go, accepted)
            else:
                accepted.close()
            return
        hub.counters.connections_accepted += 1
        task = hub.loop.create_task(self._open(accepted, address, port))
        self._opening[task] = None
        task.add_done_callback(self._opening.pop)

    def _let_go(self, held: socket.socket) -> None:
        self._held.pop(held).cancel()
        held.close()

    async def _open(self, accepted: socket.socket, address: str, port: int) -> None:
        hub, security = self._hub, self._security
        tls = None if security is None else security.server_context
        session = Session(hub, self.endpoint.listener_name, (address, port), security)
        try:
            self._set_options(accepted)
            transport, _ = await hub.loop.connect_accepted_socket(
                lambda: Receiver(session, hub, accepted, tls=tls is not None),
                accepted,
                ssl=tls,
                ssl_handshake_timeout=security.timeout_s if tls and security else None,
            )
            if tls is not None:
                hub.counters.shake_hands(transport.get_extra_info("ssl_object"))
        except OSError as error:
            hub.counters.refuse("handshake failed")
            hub.quiet_log.warn_rarely("handshake", "lost a connection of %s: %s", session, error)
            if security is not None:
                security.on_handshake_failed(session, error)
            error.__traceback__ = None  # Its frames hold the error, and asyncio's the connection.
        finally:
            if not session.connected:
                accepted.close()
                hub.limits.release(address)
                if tls is not None:
                    hub.trimmer.on_closed()
            elif self._stopping:
                session.abort("the broker stops")

    def _set_options(self, accepted: socket.socket) -> None:
        config = self._hub.config
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_S)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
        if config.send_buffer_bytes > 0:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, config.send_buffer_bytes)
        if config.receive_buffer_bytes > 0:
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.receive_buffer_bytes)


async def _resolve(endpoint: Endpoint) -> list[str]:
    """The addresses to bind, the one that must succeed first."""
    if not endpoint.host:
        return ["0.0.0.0", "::"]
    if endpoint.host == "localhost":
        return ["127.0.0.1", "::1"]
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(endpoint.host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        raise ListenError(
            f"cannot listen on {endpoint}: {str(error.strerror or error).lower()}"
        ) from None
    return list(dict.fromkeys(str(item[4][0]) for item in found))


def _bind(endpoint: Endpoint, addresses: list[str], open_socket: _Open) -> list[socket.socket]:
    for _ in range(FREE_PORT_ATTEMPTS):
        try:
            return _bind_all(endpoint.port, addresses, open_socket)
        except OSError as error:
            # A free port of one address may be taken on the other: ask for another one.
            if endpoint.port == 0 and error.errno == errno.EADDRINUSE:
                continue
            raise ListenError(f"cannot listen on {endpoint}: {_explain(endpoint, error)}") from None
    raise ListenError(f"cannot listen on {endpoint}: no port is free on all of its addresses")


def _bind_all(port: int, addresses: list[str], open_socket: _Open) -> list[socket.socket]:
    sockets: list[socket.socket] = []
    try:
        for address in addresses:
            try:
                sockets.append(open_socket(address, port))
            except OSError as error:
                if not sockets or error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                    raise
                logger.debug("not listening on %s: %s", address, error)
                continue
            port = sockets[0].getsockname()[1]
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    return sockets


def _bind_one(new_socket: NewSocket, backlog: int, address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = new_socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setblocking(False)
        listening.bind((address, port))
        listening.listen(backlog)
    except OSError:
        listening.close()
        raise
    return listening


def _explain(endpoint: Endpoint, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {endpoint.port} is in use by another process"
        case errno.EACCES:
            return f"this user may not bind port {endpoint.port}"
        case errno.EADDRNOTAVAIL:
            return f"{endpoint.host} is not an address of this machine"
    return str(error.strerror or error).lower()
