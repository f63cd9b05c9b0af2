"""`ottla serve`: one node as a process."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec

import uvloop

from ottla.node.config import METRICS_HOST, METRICS_PORT, load_config, log_without_effect
from ottla.node.config_file import ConfigError
from ottla.node.descriptors import raise_descriptor_limit
from ottla.node.exposure import validate_locked, validate_open_first
from ottla.node.log_lines import configure_logging
from ottla.node.node import Node
from ottla.node.serve_settings import LogFormat, ServeSettings
from ottla.node.service_manager import notify, tell_when_ready
from ottla.node.start_errors import StartError, UnusableDirectory

logger = logging.getLogger("ottla.node")

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2

_NEXT_STEPS = """
Ottla is ready on {address}. In another terminal, try:

  {command} topics create greetings --partitions 3
  {command} produce greetings "hello, world"
  {command} consume greetings --from-beginning --no-follow

Stop it with Ctrl-C. The data stays in {data}.
"""


# Runs beside a node that serves at this host and port, with its metrics at this URL if any, until
# it is cancelled.
Beside = Callable[[str, int, str | None], Awaitable[None]]
_LOOPBACK = "127.0.0.1"


def serve(
    settings: ServeSettings, beside: Beside | None = None, *, beside_logs_in: bool = False
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code of the process."""
    configure_logging(settings.log_format)
    try:
        values = load_config(settings, os.environ)
        if not settings.insecure:
            validate_locked(values)
        if beside is not None and not beside_logs_in:
            validate_open_first(values)
    except ConfigError as error:
        sys.stderr.write(f"ottla: {error}\n")
        return EXIT_USAGE
    if beside is not None and METRICS_PORT.name not in values and find_spec("prometheus_client"):
        # The companion serves them on its own port.
        values |= {METRICS_HOST.name: _LOOPBACK, METRICS_PORT.name: 0}
    log_without_effect(values)
    raise_descriptor_limit()
    return uvloop.run(_run(values, settings, beside))


async def _run(values: Mapping[str, object], settings: ServeSettings, beside: Beside | None) -> int:
    node = Node(values, new_cluster=settings.new_cluster)
    stop_asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_asked.set)
    gc.disable()  # A start creates much that lasts, and examining it repeatedly costs time.
    starting = asyncio.ensure_future(node.start())
    ended = asyncio.ensure_future(_first_of(stop_asked, node.failed))
    await asyncio.wait({starting, ended}, return_when=asyncio.FIRST_COMPLETED)
    try:
        if starting.done():
            await starting
            settle_interpreter()
            if settings.log_format is LogFormat.TEXT and sys.stdout.isatty():
                _greet(node)
            notifying = asyncio.ensure_future(tell_when_ready(node.readiness))
            await _accompanied(node, ended, beside)
            notifying.cancel()
            notify("STOPPING=1")
            await node.stop()
        else:
            starting.cancel()
            await asyncio.wait({starting})
    except StartError as error:
        sys.stderr.write(f"ottla: {error}\n")
        return EXIT_USAGE if isinstance(error, UnusableDirectory) else EXIT_FAILED
    finally:
        ended.cancel()
    return EXIT_FAILED if node.failed.is_set() else EXIT_OK


async def _accompanied(node: Node, ended: Awaitable[None], beside: Beside | None) -> None:
    """Wait for the end. The companion stops before the node, while it still answers."""
    endpoint = node.endpoints[0]
    company = beside and asyncio.ensure_future(
        beside(endpoint.host or "", endpoint.port, node.metrics_url)
    )
    await ended
    if company:
        company.cancel()
        await asyncio.wait({company})


async def _first_of(*events: asyncio.Event) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def settle_interpreter() -> None:
    """Trade unneeded throughput for latency.

    What the start created lives as long as the process, so the collector need not examine it again.
    No repeated path leaves cycles, so what triggers the collector is mostly growing state, as when
    a coordinator is loaded: ten thousand new objects are collected in a millisecond, a hundred
    thousand in ten, and everything once in two million, if a quarter of them is new. So a leftover
    cycle is gone before it matters. A thread that returns from a sync should not wait long for its
    turn.
    """
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(10_000, 10, 20)
    sys.setswitchinterval(0.0005)


def _greet(node: Node) -> None:
    command = "ottla" if os.environ.get("VIRTUAL_ENV") else os.path.relpath(sys.argv[0])
    endpoint = node.endpoints[0]
    address = f"{endpoint.host or 'localhost'}:{endpoint.port}"
    data = ", ".join(node.directories)
    sys.stdout.write(_NEXT_STEPS.format(address=address, command=command, data=data))
    sys.stdout.flush()
