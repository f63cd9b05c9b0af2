"""The gateway in a process of its own beside a node, which it does not outlive.

It is started again when it ends by itself, with a pause that grows while it keeps ending.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.gateway import MISSING
from ottla.node.settings import LogFormat
from ottla.protocol.addresses import Address, split_address

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


def gateway_beside(
    address: Address,
    command_config: Path | None = None,
    *,
    insecure: bool = False,
    log_format: LogFormat = LogFormat.TEXT,
) -> Callable[[str, int, str | None], Awaitable[None]]:
    """What to run beside a node that serves at a host and port; cancel it to stop.

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
        pause_s = 1.0
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            code = await _run_once(bootstrap, [*arguments, *metrics])
            if loop.time() - begun > _STEADY_S:
                pause_s = 1.0
            sys.stderr.write(
                f"ottla: the gateway has ended with exit code {code}; it starts again in"
                f" {pause_s:.0f} s\n"
            )
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)

    return run


async def _run_once(bootstrap: str, arguments: Sequence[str]) -> int:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ottla.cli.child_node",
        str(os.getpid()),
        "gateway",
        *("--bootstrap-server", bootstrap),
        *arguments,
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
