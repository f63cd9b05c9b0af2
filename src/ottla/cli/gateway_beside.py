"""The gateway in a process of its own beside a node, which it does not outlive.

What would keep it from starting is found before the node starts. It is started again when it ends
by itself, with a pause that grows while it keeps ending. While another process has its port it
waits for that, and says so once.
"""

import asyncio
import logging
import random
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ottla.cli.child_nodes import child_command
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.gateway import MISSING, is_loopback
from ottla.client.command_config import CommandConfigError, read_command_config
from ottla.gateway.listening import CannotListen, listen
from ottla.node.serve_settings import LogFormat
from ottla.protocol.addresses import Address, split_address

logger = logging.getLogger(__name__)

_PAUSE_S_MAX: Final = 30.0
_STEADY_S: Final = 60.0  # Who ran so long is started again at once.
_STOP_TIMEOUT_S: Final = 30.0
_EVERY_ADDRESS: Final = ("", "0.0.0.0", "::")
_NEEDED: Final = ("starlette", "uvicorn", "httptools", "websockets")


def parse_http(text: str) -> Address:
    """`PORT`, on loopback, or `HOST:PORT`; CommandError if what it takes is not installed."""
    try:
        written = split_address(f":{text}" if text.isdecimal() else text)
    except ValueError:
        written = None
    if written is None or written.listener_name is not None or written.port is None:
        raise UsageError(f"--http {text} is not PORT or HOST:PORT")
    if not all(map(find_spec, _NEEDED)):
        raise CommandError(MISSING)
    return Address(written.host or "127.0.0.1", written.port)


def reserve(address: Address, command_config: Path | None, *, insecure: bool) -> socket.socket:
    """Holds the address for the gateway; CommandError if one could not start there."""
    if not insecure and not is_loopback(address.host):
        raise UsageError(
            f"--http {address} is reached from other machines, and the gateway beside a broker has"
            " neither TLS nor logins; use loopback, run `ottla gateway` with --tls-certificate and"
            " --auth basic, or say --insecure to let everyone do everything"
        )
    try:
        if command_config is not None:
            read_command_config(command_config)
    except CommandConfigError as error:
        raise UsageError(f"--http-config {error}") from None
    try:
        return listen(address.host, address.port)
    except CannotListen as error:
        raise CommandError(
            f"the HTTP gateway cannot listen on {error}; choose another port with --http"
        ) from None


def gateway_beside(
    address: Address,
    reserved: socket.socket,
    command_config: Path | None,
    *,
    insecure: bool,
    log_format: LogFormat,
) -> Callable[[str, int, str | None], Awaitable[None]]:
    """What to run beside a node that serves at a host and port; cancel it to stop.

    `reserved` is held until then, so that nobody else takes the address, the node itself included.
    It serves the node's metrics with its own, if there is a URL for them.
    """
    arguments = ["--host", address.host, "--port", str(address.port), "--log-format", log_format]
    if command_config is not None:
        arguments += ["--command-config", str(command_config)]
    if insecure:
        arguments.append("--insecure")

    async def run(host: str, port: int, metrics_url: str | None) -> None:
        metrics = [] if metrics_url is None else ["--node-metrics", metrics_url]
        bootstrap = f"{'localhost' if host in _EVERY_ADDRESS else host}:{port}"
        loop = asyncio.get_running_loop()
        ends_count = 0  # In a row.
        reserved.close()
        while True:
            await _wait_for_port(address)
            begun = loop.time()
            code = await _run_once(bootstrap, [*arguments, *metrics])
            ends_count = 1 if loop.time() - begun > _STEADY_S else ends_count + 1
            pause_s = _pause_s(ends_count)
            if ends_count & (ends_count - 1) == 0:  # 1, 2, 4, 8 and so on: ever more rarely.
                logger.warning(
                    "the gateway has ended %s, %d in a row; restarting in %.0f s",
                    f"with exit code {code}" if code >= 0 else f"by signal {-code}",
                    ends_count,
                    pause_s,
                )
            await asyncio.sleep(pause_s)

    return run


async def _wait_for_port(address: Address) -> None:
    tries_count = 0
    while True:
        try:
            listen(address.host, address.port).close()
            return
        except CannotListen as error:
            tries_count += 1
            if tries_count == 1:
                logger.error("the gateway cannot listen on %s; retrying until it can", error)
        await asyncio.sleep(_pause_s(tries_count))


def _pause_s(count: int) -> float:
    """Doubles with each. Gateways that ended together do not come back together."""
    return min(2.0 ** min(count - 1, 10), _PAUSE_S_MAX) * random.uniform(0.75, 1.25)


async def _run_once(bootstrap: str, arguments: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        *child_command("gateway", "--bootstrap-server", bootstrap, *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-c is passed on, not doubled.
    )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        await _stop(process)
        raise


async def _stop(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # It has ended, and is about to be noticed.
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
        except TimeoutError:
            process.kill()
            await process.wait()
