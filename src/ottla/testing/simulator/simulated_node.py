"""A real node on a simulated machine, across restarts."""

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from ottla.node.config import load_config
from ottla.node.environment import Environment
from ottla.node.node import Node
from ottla.node.serve_settings import ServeSettings
from ottla.node.start_errors import StartError
from ottla.protocol.addresses import Address
from ottla.protocol.topics import TopicPartition
from ottla.testing.simulator.bit_flips import Flip, flip
from ottla.testing.simulator.executor import OneThread
from ottla.testing.simulator.host import Host
from ottla.testing.simulator.sockets import SimulatedSocket

if TYPE_CHECKING:
    from ottla.testing.simulator.network import Network
    from ottla.testing.simulator.process import Process

PORT = 9092
DATA = "/data"
_PATIENT = {"quorum.join.timeout.ms": "30000"}  # The nodes to join may be down for a while.


class SimulatedNode:
    def __init__(
        self,
        network: "Network",
        node_id: int,
        overrides: Mapping[str, str],
        others: Callable[["SimulatedNode"], Sequence[Address]],
        *,
        directories: Sequence[str] = (DATA,),
        listeners: Sequence[str] = (),
    ) -> None:
        """`others` are the nodes of its cluster; without `listeners` it has the usual one."""
        self.node_id = node_id
        self.host = Host(f"node-{node_id}", network)
        self.host.on_death = self._on_death
        self.node: Node | None = None  # While it runs.
        self.serving = False
        self.life = 0
        self.held_down = 0  # How many want it to stay down.
        self.leaving = False  # It is to be no part of the cluster any more.
        self.on_serving: list[Callable[[SimulatedNode], object]] = []
        self._overrides = overrides
        self._others = others
        self._directories = tuple(map(Path, directories))
        self._listeners = tuple(listeners) or (f"PLAINTEXT://{self.host.name}:{PORT}",)
        self.begins_cluster = False  # With its next life.
        self._flips: list[Flip] = []

    def __str__(self) -> str:
        return self.host.name

    @property
    def address(self) -> Address:
        return Address(self.host.name, PORT)

    def start(self) -> None:
        self.life += 1
        process = self.host.start_process()
        self._tell("starts")
        process.create_task(self._live(process), name="main")

    def stop(self) -> None:
        """Stop cleanly, as on SIGTERM."""
        process = self.host.process
        if process is not None and self.node is not None:
            self._tell("is asked to stop")
            process.create_task(self._stop(process, self.node), name="stop")

    def kill(self) -> None:
        self._tell("is killed")
        self.host.kill()
        self._on_death()

    def power_off(self) -> None:
        self._tell("loses power")
        self.host.power_off()
        self._on_death()

    def lose_directory(self) -> None:
        """Its disk is gone, and a new one in its place."""
        self._tell("loses its data directory")
        self.host.power_off()
        self.host.replace_disk()
        self._on_death()

    def flip_bit(self, chance: random.Random) -> None:
        """Of a file on its disk, while it is down."""
        flipped = flip(self.host.disk, DATA, chance)
        if flipped is not None:
            self._tell(f"has a wrong bit in {flipped}")
            self._flips.append(flipped)

    @property
    def damage(self) -> list[Flip]:
        """Of its records, as far as nobody has repaired it."""
        return [each for each in self._flips if each.is_of_records and each.is_there()]

    def had_damage(self, partition: TopicPartition) -> bool:
        return any(each.partition == partition for each in self._flips)

    def pause(self) -> None:
        if self.host.process is not None:
            self._tell("is paused")
            self.host.process.pause()

    def resume(self) -> None:
        if self.host.process is not None and self.host.process.paused:
            self._tell("goes on")
            self.host.process.resume()

    async def _live(self, process: "Process") -> None:
        join = self._join()
        values = load_config(
            ServeSettings(
                id=self.node_id,
                listeners=self._listeners,
                data=self._directories,
                overrides={**_PATIENT, **self._overrides},
                join=join,
            ),
            {},
        )
        self.node = node = Node(values, self._environment(process), new_cluster=not join)
        try:
            await node.start()
        except StartError as error:
            self._tell(f"cannot start: {error}")
            self._exit(process)
            return
        self._tell("serves")
        self.serving = True
        for listener in self.on_serving:
            listener(self)
        await node.failed.wait()
        await self._stop(process, node)

    def _join(self) -> tuple[str, ...]:
        """There is somebody to join unless this node is the first."""
        if self.begins_cluster:
            self.begins_cluster = False
            return ()
        return tuple(map(str, self._others(self)))

    async def _stop(self, process: "Process", node: Node) -> None:
        self.serving = False
        await node.stop()
        self._tell("has stopped")
        self._exit(process)

    def _exit(self, process: "Process") -> None:
        def end() -> None:
            if self.host.process is process:
                self.host.kill()
                self._on_death()

        self.host.scheduler.call_soon(end)

    def _on_death(self) -> None:
        self.node = None
        self.serving = False

    def _environment(self, process: "Process") -> Environment:
        host = self.host
        chance = host.random()
        return Environment(
            filesystem=host.disk,
            clock=host,
            random=chance,
            new_uuid=lambda: UUID(int=chance.getrandbits(128), version=4),
            executor=process.executor,
            quorum_executor=process.executor,
            login_executor=process.executor,
            new_threads=lambda _count, _name: OneThread(),
            new_socket=lambda family: SimulatedSocket(process, family),  # type: ignore[arg-type, return-value]
            host_name=host.name,
        )

    def _tell(self, what: str) -> None:
        self.host.scheduler.tell(self.host.name, what)
