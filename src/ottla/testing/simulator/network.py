"""The network between machines: who can reach whom, how fast, and how it fails.

Each direction between two machines has its own state. A cut direction loses everything; TCP resends
it once the direction is open again, or gives up if that takes too long.
"""

import asyncio
import errno
from asyncio import Future
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ottla.testing.simulator.scheduler import Scheduler
from ottla.testing.simulator.sockets import SimulatedSocket
from ottla.testing.simulator.transport import Pipe, SimulatedTransport

if TYPE_CHECKING:
    from ottla.testing.simulator.host import Host
    from ottla.testing.simulator.process import Process

LOOPBACK_DELAY_S = 0.00002
REPEAT_AFTER_S = 0.2  # How long TCP waits before it repeats what was lost.
CONNECT_REPEATS_S = (1.0, 2.0, 4.0, 8.0, 16.0)
SPLIT_CHANCE = 0.1
FIRST_EPHEMERAL_PORT = 32_768
CONNECTIONS_KEPT = 100  # Closed ones, at most.
SPIKE_CHANCE = 0.01
SPIKE_FACTOR = 30.0


@dataclass(slots=True)
class Way:
    """From one machine to another."""

    cut: bool = False
    delay_s: float = 0.0004  # On average.
    loss: float = 0.0  # Of how many pieces the first attempt is lost.


class Network:
    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.hosts: dict[str, Host] = {}  # By address.
        self._chance = scheduler.chance("network")
        self._ways: dict[tuple[Host, Host], Way] = {}
        self._listening: dict[tuple[str, int], SimulatedSocket] = {}
        self._connections: dict[SimulatedTransport, None] = {}  # The client's ends.
        self._forget_at = CONNECTIONS_KEPT  # So many of them are looked through for closed ones.
        self._next_port = FIRST_EPHEMERAL_PORT
        self._next_descriptor = 1000

    def add(self, host: "Host") -> str:
        """The address of a new machine."""
        number = len(self.hosts) + 1
        address = f"10.0.{number // 250}.{number % 250}"
        self.hosts[address] = host
        return address

    def resolve(self, name: str) -> str:
        for address, host in self.hosts.items():
            if name in {host.name, address}:
                return address
        raise OSError(errno.ENOENT, f"there is no machine {name}")

    # Its state.

    def way(self, source: "Host", target: "Host") -> Way:
        way = self._ways.get((source, target))
        if way is None:
            way = self._ways[source, target] = Way()
        return way

    def is_open(self, source: "Host", target: "Host") -> bool:
        return source is target or not self.way(source, target).cut

    def cut(self, source: "Host", target: "Host") -> None:
        self.way(source, target).cut = True

    def mend(self, source: "Host", target: "Host") -> None:
        self.way(source, target).cut = False
        for pipe in self._pipes():
            if (pipe.source.process.host, pipe.target.process.host) == (source, target):
                pipe.repeat_lost()

    def on_host_up(self, host: "Host") -> None:
        """What is repeated to a machine that was off finds nobody who knows the connection."""
        for pipe in self._pipes():
            if pipe.target.process.host is host and self.is_open(pipe.source.process.host, host):
                pipe.repeat_lost()

    def reset_connections(self, host: "Host", other: "Host") -> None:
        for pipe in self._pipes():
            if {pipe.source.process.host, pipe.target.process.host} == {host, other}:
                pipe.target.reset()

    def arrival(self, source: "Host", target: "Host") -> float:
        """When something that is sent now is there."""
        now = self.scheduler.now
        if source is target:
            return now + LOOPBACK_DELAY_S
        way = self.way(source, target)
        chance = self._chance
        delay_s = way.delay_s * (0.5 + chance.expovariate(2.0))
        if chance.random() < SPIKE_CHANCE:
            delay_s *= SPIKE_FACTOR
        if way.loss and chance.random() < way.loss:
            delay_s += REPEAT_AFTER_S
        return now + delay_s

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """As TCP may cut it."""
        if len(data) > 1 and self._chance.random() < SPLIT_CHANCE:
            position = self._chance.randrange(1, len(data))
            yield data[:position]
            yield data[position:]
        else:
            yield data

    # For processes.

    def new_descriptor(self) -> int:
        self._next_descriptor += 1
        return self._next_descriptor

    def bind(self, listening: SimulatedSocket, address: str, port: int) -> tuple[str, int]:
        host = listening.process.host
        if address not in {host.address, "0.0.0.0"}:
            raise OSError(errno.EADDRNOTAVAIL, "not an address of this machine")
        port = port or self._new_port()
        if (host.address, port) in self._listening:
            raise OSError(errno.EADDRINUSE, "the port is taken")
        self._listening[host.address, port] = listening
        return host.address, port

    def unbind(self, listening: SimulatedSocket) -> None:
        if self._listening.get(listening.address) is listening:
            del self._listening[listening.address]

    async def connect(self, process: "Process", name: str, port: int) -> SimulatedTransport:
        target = self.hosts[self.resolve(name)]
        answer: Future[SimulatedTransport] = process.create_future()
        try:
            for wait_s in CONNECT_REPEATS_S:
                arrival = self.arrival(process.host, target)
                arrive = partial(self._on_connect, process, target, port, answer)
                self.scheduler.call_at(arrival, arrive)
                await asyncio.wait([answer], timeout=wait_s)
                if answer.done():
                    return answer.result()
        finally:
            answer.cancel()
            del answer, arrive  # They hold an exception whose traceback has this frame.
        raise TimeoutError(errno.ETIMEDOUT, f"{name}:{port} does not answer")

    def _on_connect(
        self,
        process: "Process",
        target: "Host",
        port: int,
        answer: "Future[SimulatedTransport]",
    ) -> None:
        source = process.host
        both_ways = self.is_open(source, target) and self.is_open(target, source)
        if not (process.alive and target.up and both_ways) or answer.done():
            return
        listening = self._listening.get((target.address, port))
        arrival = self.arrival(target, source)
        if listening is None:
            refusal = ConnectionRefusedError(errno.ECONNREFUSED, f"{target.name}:{port} refused")
            self.scheduler.call_at(arrival, lambda: _refuse(answer, refusal))
            return
        transport = self._open(process, listening)
        self.scheduler.call_at(arrival, lambda: _accept(answer, transport))

    def _open(self, process: "Process", listening: SimulatedSocket) -> SimulatedTransport:
        address = (process.host.address, self._new_port())
        near = SimulatedTransport(process, address, listening.address)
        far = SimulatedTransport(listening.process, listening.address, address)
        near.pipe = Pipe(self, near, far)
        far.pipe = near.pipe.reverse = Pipe(self, far, near)
        far.pipe.reverse = near.pipe
        self._connections[near] = None
        if len(self._connections) >= self._forget_at:
            self._forget_at = CONNECTIONS_KEPT + len(self._pipes()) // 2
        listening.waiting.append(far)
        listening.process.on_readable(listening.fileno())
        return near

    def _new_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def _pipes(self) -> list[Pipe]:
        """Of connections that have an end; the others are forgotten."""
        for near in list(self._connections):
            if not near.is_open and not near.pipe.target.is_open:
                del self._connections[near]
        return [pipe for near in self._connections for pipe in (near.pipe, near.pipe.reverse)]


def _refuse(answer: "Future[SimulatedTransport]", error: OSError) -> None:
    if not answer.done():
        answer.set_exception(error)


def _accept(answer: "Future[SimulatedTransport]", transport: SimulatedTransport) -> None:
    if answer.done() or not transport.process.alive:
        transport.abort()
    else:
        answer.set_result(transport)
