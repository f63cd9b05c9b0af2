"""Runs the gateway in this process, until SIGTERM or SIGINT.

A signal ends what has no end of its own (streams, long polls), lets the other requests finish, and
then has everything acknowledged that was taken.
"""

import asyncio
import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn
import uvloop

from ottla.gateway.app import build_app
from ottla.gateway.identity import Users
from ottla.gateway.one_write import OneWriteProtocol
from ottla.gateway.services import Services
from ottla.gateway.settings import Auth, GatewaySettings

logger = logging.getLogger("ottla.gateway")

EXIT_OK, EXIT_FAILED = 0, 1


def serve(settings: GatewaySettings) -> int:
    """Returns the exit code of the process."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    try:
        listener = _listen(settings)
    except OSError as error:
        sys.stderr.write(f"ottla: cannot listen on {settings.host}:{settings.port}: {error}\n")
        return EXIT_FAILED
    with listener:
        uvloop.run(run(settings, listener))
    return EXIT_OK


async def run(settings: GatewaySettings, listener: socket.socket) -> None:
    """Serve on a socket that listens."""
    services = await Services.build(settings)
    users = None
    try:
        if settings.auth is Auth.BASIC:
            users = Users(services, settings.access(), settings.users_max)
        config = _config(services, users)
        server = _Server(config)
        host, port = listener.getsockname()[:2]
        scheme = "https" if config.is_ssl else "http"
        logger.info(
            "gateway to %s ready on %s://%s:%d", settings.bootstrap_servers, scheme, host, port
        )

        def stop() -> None:
            services.stopping.set()
            server.should_exit = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop)
        _settle_collector()
        await server.serve([listener])
    finally:
        if users is not None:
            await users.close()
        await services.close()


def _settle_collector() -> None:
    """Requests come and go without cycles; what the start made stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 20)


def _listen(settings: GatewaySettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    return socket.create_server(
        (settings.host, settings.port), family=family, backlog=2048, reuse_port=False
    )


def _config(services: Services, users: Users | None) -> uvicorn.Config:
    settings = services.settings
    return uvicorn.Config(
        build_app(services, users),
        loop="none",
        http=OneWriteProtocol,
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # Nothing asks for the address of a client.
        limit_concurrency=settings.connections_max,
        timeout_keep_alive=int(settings.idle_s),
        timeout_graceful_shutdown=int(settings.drain_s),
        ws_max_size=settings.body_bytes_max,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


class _Server(uvicorn.Server):
    """Leaves the signals to the loop; uvicorn's own would end the process by the signal."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
