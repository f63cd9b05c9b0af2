"""Several nodes as child processes of one command, which they do not outlive.

Their log lines come through with the number of the node in front. A signal to stop goes to all of
them. A node that ends by itself is started again where that is wanted, later each time if it never
lasts; one that says that its command line is wrong, or its directory unusable, never is.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ottla.cli.errors import ExitCode
from ottla.cli.output import print_now
from ottla.client.wire.nodes import nodes_request
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ProtocolError

# All nodes are started at once, and the first has to begin the cluster before others join it.
PATIENT: Final = ("--set", "quorum.join.timeout.ms=120000")
RESTART_DELAY_S: Final = 1.0
RESTART_DELAY_S_MAX: Final = 30.0
LASTED_S: Final = 60.0  # A node that ran for so long starts again after the short delay.
STOP_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.05
_ANSWER_TIMEOUT_S: Final = 5.0
_LINE_BYTES_MAX: Final = 1 << 20
_SIZE_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ChildNode:
    node_id: int
    host: str
    port: int
    arguments: tuple[str, ...]  # Of `ottla serve`.


class ChildNodes:
    """`restarts`: whether a node that ends is started again."""

    def __init__(self, nodes: Sequence[ChildNode], *, restarts: bool) -> None:
        self._nodes = nodes
        self._restarts = restarts
        self._processes: dict[int, asyncio.subprocess.Process] = {}
        self._given_up: set[int] = set()  # Ended, and not started again.
        self._stopping = asyncio.Event()

    @property
    def pids(self) -> dict[int, int]:
        return {node_id: process.pid for node_id, process in self._processes.items()}

    async def run(self) -> int:
        """Until SIGINT or SIGTERM, or until no node is left; returns the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._stopping.set)
        keeping = [asyncio.ensure_future(self._keep(node)) for node in self._nodes]
        stopped = asyncio.ensure_future(self._stopping.wait())
        ended = asyncio.gather(*keeping)
        either: list[asyncio.Future[Any]] = [ended, stopped]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        self._stopping.set()
        for process in self._processes.values():
            _send(process, signal.SIGTERM)
        try:
            codes = await asyncio.wait_for(asyncio.shield(ended), STOP_TIMEOUT_S)
        except TimeoutError:
            for process in self._processes.values():
                _send(process, signal.SIGKILL)
            codes = await ended
        return max(map(abs, codes), default=ExitCode.OK)

    async def wait_until_ready(self) -> bool:
        """Whether every node serves, before it is stopped or one gives up."""
        for node in self._nodes:
            while not await _serves(node):
                if self._stopping.is_set() or self._given_up:
                    return False
                await asyncio.sleep(_POLL_S)
        return True

    def stop(self) -> None:
        """`run` then returns."""
        self._stopping.set()

    async def _keep(self, node: ChildNode) -> int:
        """Returns the exit code of the last process."""
        delay_s = RESTART_DELAY_S
        while True:
            began_s = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                *child_command("serve", *node.arguments),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=_LINE_BYTES_MAX,
                start_new_session=True,  # Ctrl-c is passed on, not doubled.
            )
            self._processes[node.node_id] = process
            if self._stopping.is_set():  # It was about to begin when the others were told.
                _send(process, signal.SIGTERM)
            await self._pass_on_lines(node, process)
            code = await process.wait()
            del self._processes[node.node_id]
            if self._stopping.is_set():
                return ExitCode.OK if code == -signal.SIGTERM else code  # It was just starting.
            print_now(f"node {node.node_id} has ended with exit code {code}", sys.stderr)
            if not self._restarts or code == ExitCode.USAGE:
                self._given_up.add(node.node_id)
                return code
            if time.monotonic() - began_s >= LASTED_S:
                delay_s = RESTART_DELAY_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay_s)
                return code
            delay_s = min(2 * delay_s, RESTART_DELAY_S_MAX)

    async def _pass_on_lines(self, node: ChildNode, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            text = line.decode(errors="replace").rstrip()
            print_now(f"[{node.node_id}] {text}", sys.stderr)


def child_command(*arguments: str) -> tuple[str, ...]:
    """The `ottla` command in a process that does not outlive this one."""
    return (sys.executable, "-m", "ottla.cli.child_node", str(os.getpid()), *arguments)


def _send(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # It has ended, and is about to be noticed.
        process.send_signal(number)


async def _serves(node: ChildNode) -> bool:
    """Whether it tells clients of itself."""
    request = nodes_request()
    writer = None
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            reader, writer = await asyncio.open_connection(node.host, node.port)
            writer.write(write_request(request.__api_key__, 0, 1, "ottla-cli", request))
            size = int.from_bytes(await reader.readexactly(_SIZE_BYTES), "big")
            frame = memoryview(await reader.readexactly(size))
        response = read_response(request.__api_key__, 0, frame)[1]
    except (OSError, EOFError, ProtocolError):
        return False
    finally:
        if writer is not None:
            writer.close()
    return any(broker.broker_id == node.node_id for broker in response.brokers)
