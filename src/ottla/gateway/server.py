"""Runs the gateway in this process, until SIGTERM or SIGINT.

A signal ends what would not end by itself (streams, long polls), lets the other requests finish,
and then waits for everything accepted to be acknowledged.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate

import uvicorn
import uvloop
from starlette.types import ASGIApp
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

from ottla.gateway.app import ADMIN, FAMILIES, TRAFFIC, Families, build_app
from ottla.gateway.identity import Users
from ottla.gateway.listening import CannotListen, listen
from ottla.gateway.one_write import OneWriteProtocol
from ottla.gateway.services import Services
from ottla.gateway.settings import Auth, GatewaySettings
from ottla.gateway.tls_ends import report_ends

logger = logging.getLogger("ottla.gateway")

EXIT_OK, EXIT_FAILED = 0, 1

_LOOK_S = 0.01  # Interval between checks for open WebSockets while stopping.


def serve(
    settings: GatewaySettings,
    pages: Families = (),
    on_tls_end: Callable[[], object] = lambda: None,
) -> int:
    """Returns the process's exit code. The caller has configured logging.

    `pages` are for people, and served where administration is. `on_tls_end` is called when a TLS
    connection has ended.
    """
    ports = [settings.port, *([] if settings.admin_port is None else [settings.admin_port])]
    with contextlib.ExitStack() as listening:
        try:
            listeners = [listening.enter_context(listen(settings.host, port)) for port in ports]
        except CannotListen as error:
            sys.stderr.write(f"ottla: cannot listen on {error}\n")
            return EXIT_FAILED
        uvloop.run(run(settings, *listeners, pages=pages, on_tls_end=on_tls_end))
    return EXIT_OK


async def run(
    settings: GatewaySettings,
    listener: socket.socket,
    admin: socket.socket | None = None,
    *,
    pages: Families = (),
    on_tls_end: Callable[[], object] = lambda: None,
) -> None:
    """Serve on listening sockets; without `admin` the first one serves everything."""
    services = Services(settings, settings.access())
    users = None
    try:
        if settings.auth is Auth.BASIC:
            users = Users(services, settings.access(), settings.users_max, settings.signers)
        doors: list[tuple[socket.socket, Families]]
        if admin is None:
            doors = [(listener, (*FAMILIES, *pages))]
        else:
            doors = [(listener, TRAFFIC), (admin, (*ADMIN, *pages))]
        servers = [
            _Server(_config(settings, build_app(services, users, families)), socket_)
            for socket_, families in doors
        ]
        for server in servers:
            server.report_tls_ends(on_tls_end)
            logger.info("gateway to %s ready on %s", settings.bootstrap_servers, server.url)

        def stop() -> None:
            services.stopping.set()
            for server in servers:
                server.stop()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        _settle_collector()
        await asyncio.gather(*(server.run_until_stopped() for server in servers))
    finally:
        if users is not None:
            await users.close()
        await services.close()


def _settle_collector() -> None:
    """Requests leave no cycles; objects created at start-up stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)


def _config(settings: GatewaySettings, app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",
        http=OneWriteProtocol,
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # Nothing uses the client's address.
        limit_concurrency=settings.connections_max,
        timeout_keep_alive=int(settings.idle_s),
        timeout_graceful_shutdown=int(settings.drain_s),
        ws_max_size=settings.body_bytes_max,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


class _Server(uvicorn.Server):
    """Leaves signals to the loop; uvicorn's own would end the process by the signal.

    Sleeps until stopped. uvicorn's own wakes up ten times a second to check the clock and
    `should_exit`.
    """

    def __init__(self, config: uvicorn.Config, listener: socket.socket) -> None:
        super().__init__(config)
        self.server_state = _DatedState()
        self._listener = listener
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        self.should_exit = True
        self._stopped.set()

    @property
    def url(self) -> str:
        host, port = self._listener.getsockname()[:2]
        scheme = "https" if self.config.is_ssl else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"

    def report_tls_ends(self, on_end: Callable[[], object]) -> None:
        self.config.load()
        if self.config.ssl is not None:
            report_ends(self.config.ssl, on_end)

    async def run_until_stopped(self) -> None:
        await self.serve([self._listener])

    async def main_loop(self) -> None:
        await self._stopped.wait()
        for server in self.servers:
            server.close()
        await self._let_websockets_end()

    async def _let_websockets_end(self) -> None:
        """They close themselves when the gateway stops; uvicorn would cut them off."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout((self.config.timeout_graceful_shutdown or 0) / 2):
                while self._has_websockets():  # noqa: ASYNC110 - uvicorn tells nobody.
                    await asyncio.sleep(_LOOK_S)

    def _has_websockets(self) -> bool:
        return any(
            isinstance(connection, WebSocketsSansIOProtocol)
            for connection in self.server_state.connections
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _DatedState(ServerState):
    """Reads the clock when an answer needs the date."""

    def __init__(self) -> None:
        super().__init__()
        self._second = -1

    @property
    def default_headers(self) -> list[tuple[bytes, bytes]]:
        second = int(time.time())
        if second != self._second:
            self._second = second
            self._headers = [(b"date", formatdate(second, usegmt=True).encode())]
        return self._headers

    @default_headers.setter
    def default_headers(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers
