"""Machines of the simulator: real nodes over simulated disks, network and time.

Everything runs in the test's thread, and time advances only while something waits.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from ottla.network.peers import Peers
from ottla.testing.simulator.host import Host
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.scheduler import Scheduler
from ottla.testing.simulator.simulated_node import DATA, SimulatedNode

PATIENCE_S = 600.0  # Simulated time.

T = TypeVar("T")


class World:
    """The test has its own machine, which never fails."""

    def __init__(self, seed: int = 0) -> None:
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.host = Host("test", self.network)
        self.process = self.host.start_process()
        self.peers = Peers(self.process, "test", lambda: 0.5)
        self.nodes: dict[int, SimulatedNode] = {}  # Keyed by id.

    def add_node(
        self,
        node_id: int,
        overrides: Mapping[str, str],
        *,
        join: SimulatedNode | None = None,
        directories: Sequence[str] = (DATA,),
        listeners: Sequence[str] = (),
    ) -> SimulatedNode:
        """Not started. It starts a cluster unless it joins another node."""
        node = SimulatedNode(
            self.network,
            node_id,
            overrides,
            lambda _: () if join is None else (join.address,),
            directories=directories,
            listeners=listeners,
        )
        self.nodes[node_id] = node
        return node

    def run(self, coroutine: Coroutine[Any, Any, T], process: Process | None = None) -> T:
        """Runs on the test's machine, or in another process."""
        task = (process or self.process).create_task(coroutine)
        self.scheduler.run_until(self.scheduler.now + PATIENCE_S, task.done)
        assert task.done(), f"no end after {PATIENCE_S:.0f} s"
        return task.result()

    async def run_in(self, process: Process, coroutine: Coroutine[Any, Any, T]) -> T:
        """Runs something on another machine's event loop, from the test's machine."""
        outcome: asyncio.Future[T] = self.process.create_future()

        def on_done(task: asyncio.Task[T]) -> None:
            if outcome.done():
                return
            if task.cancelled():
                outcome.cancel()
            elif (error := task.exception()) is None:
                outcome.set_result(task.result())
            else:
                outcome.set_exception(error)

        process.create_task(coroutine).add_done_callback(on_done)
        return await outcome

    async def start(self, *nodes: SimulatedNode) -> None:
        for node in nodes:
            node.start()
        await until(lambda: all(node.serving for node in nodes))

    def close(self) -> None:
        failed = [
            str(node)
            for node in self.nodes.values()
            if node.node is not None and node.node.failed.is_set()
        ]
        for host in self.network.hosts.values():
            host.dispose()
        assert not failed, f"failed: {failed}"


async def until(condition: Callable[[], bool]) -> None:
    """Fails after the test's patience if it never becomes true."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)
