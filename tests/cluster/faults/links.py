"""The links between nodes, under a test's control: everyone connects to a proxy of each node.

A node names itself in the first request of a connection (its client id), so each connection belongs
to a pair of nodes, or to a client. With TLS that is unreadable, so the connecting process is looked
up. A cut stops the bytes in one direction; they continue when it is healed, as in a real network. A
connection made meanwhile gets no answer.
"""

import asyncio
import re
import threading
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import cast

from tests.cluster.faults.socket_owner import owner_of

CLIENT = 0  # For everyone but nodes.
TIMEOUT_S = 120

_READ_BYTES = 1 << 16
_TLS_HANDSHAKE = 0x16
_NODE = re.compile(rb"^.{12}\x00.node-(\d+)", re.DOTALL)  # Size, header, length of the client id.

Direction = tuple[int, int]  # From one node to another.


class Links:
    """`ports` are the nodes' own; `port_of` returns those of their proxies."""

    def __init__(self) -> None:
        self._cut: set[Direction] = set()
        self._changed = asyncio.Event()
        self._servers: list[asyncio.Server] = []
        self.processes: dict[int, int] = {}  # Node ids by process id, for connections with TLS.
        self._transports: weakref.WeakSet[asyncio.WriteTransport] = weakref.WeakSet()
        self._tasks: set[asyncio.Task[None]] = set()
        self._client_tasks: dict[asyncio.Task[None], int] = {}  # And the node they connect to.
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def add(self, node_id: int, port: int) -> int:
        """The port of the proxy for a node that listens on `port`."""
        return asyncio.run_coroutine_threadsafe(self._serve(node_id, port), self._loop).result(
            TIMEOUT_S
        )

    def cut(self, source: int, target: int) -> None:
        """Nothing passes from source to target; the other direction is open."""
        self._loop.call_soon_threadsafe(self._cut.add, (source, target))

    def heal(self) -> None:
        def heal() -> None:
            self._cut.clear()
            self._changed.set()
            self._changed = asyncio.Event()

        self._loop.call_soon_threadsafe(heal)

    def disconnect_clients(self, node_id: int) -> None:
        """Closes the clients' connections to one node; they may reconnect at once."""

        def disconnect() -> None:
            for task, target in self._client_tasks.items():
                if target == node_id:
                    task.cancel()

        self._loop.call_soon_threadsafe(disconnect)

    @contextmanager
    def without(self, *directions: Direction) -> Iterator[None]:
        for direction in directions:
            self.cut(*direction)
        try:
            yield
        finally:
            self.heal()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, node_id: int, port: int) -> int:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            def end(task: asyncio.Task[None]) -> None:
                self._tasks.discard(task)
                self._client_tasks.pop(task, None)
                writer.transport.abort() if task.cancelled() else writer.close()

            self._transports.add(writer.transport)
            task = asyncio.ensure_future(self._join(node_id, port, reader, writer))
            task.add_done_callback(end)  # Also called if it is cancelled before it begins.
            self._tasks.add(task)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _join(
        self,
        target: int,
        port: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """A connection, until either side ends it."""
        with suppress(OSError):
            first = await reader.read(_READ_BYTES)
            if not first:
                return
            source = self._source(first, writer)
            if source == CLIENT:
                self._client_tasks[cast("asyncio.Task[None]", asyncio.current_task())] = target
            await self._open(source, target)
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
            self._transports.add(there_writer.transport)
            with closing(there_writer):
                there_writer.write(first)
                async with asyncio.TaskGroup() as pumps:  # Waits even if cancelled repeatedly.
                    there = pumps.create_task(self._pump(reader, there_writer, (source, target)))
                    back = pumps.create_task(self._pump(there_reader, writer, (target, source)))
                    there.add_done_callback(lambda _: back.cancel())
                    back.add_done_callback(lambda _: there.cancel())

    def _source(self, first: bytes, writer: asyncio.StreamWriter) -> int:
        """The node that connected; `first` is what it sent first."""
        if first[0] == _TLS_HANDSHAKE:
            client, server = (writer.get_extra_info(name) for name in ("peername", "sockname"))
            pid = owner_of(client, server, list(self.processes))
            return self.processes.get(pid, CLIENT) if pid else CLIENT
        named = _NODE.match(first)
        return int(named[1]) if named else CLIENT

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, direction: Direction
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_READ_BYTES):
                await self._open(*direction)
                writer.write(data)
                await writer.drain()

    async def _open(self, source: int, target: int) -> None:
        while (source, target) in self._cut:
            await self._changed.wait()

    async def _close(self) -> None:
        own = {asyncio.current_task()}
        while others := asyncio.all_tasks() - own:  # A server forgets those it is accepting.
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(others, return_when=asyncio.FIRST_COMPLETED)
        for server in self._servers:
            server.close()
        for transport in list(self._transports):  # Some may wait to flush their last bytes.
            transport.abort()
        await asyncio.sleep(0)
