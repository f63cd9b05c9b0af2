import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from ottla.testing.simulator.host import Host
from ottla.testing.simulator.network import Network
from ottla.testing.simulator.process import Process
from ottla.testing.simulator.scheduler import Scheduler
from ottla.testing.simulator.sockets import SimulatedSocket

PORT = 9


class Peer(asyncio.Protocol):
    """Keeps what it receives."""

    def __init__(self) -> None:
        self.received = b""
        self.lost: list[Exception | None] = []
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)


class World:
    """A server and a client."""

    def __init__(self, seed: int = 0) -> None:
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler)
        self.server = Host("server", self.network)
        self.client = Host("client", self.network)
        self.accepted: list[Peer] = []
        self.listen(self.server.start_process())
        self.client.start_process()

    def listen(self, process: Process) -> None:
        listening = SimulatedSocket(process, 2)
        listening.bind((process.host.address, PORT))
        listening.listen(10)

        def accept() -> None:
            accepted, _ = listening.accept()
            peer = Peer()
            self.accepted.append(peer)
            process.create_task(process.connect_accepted_socket(lambda: peer, accepted))  # type: ignore[arg-type]

        process.add_reader(listening.fileno(), accept)

    def run(self, work: Coroutine[Any, Any, Any], seconds: float = 60.0) -> Any:
        assert self.client.process is not None
        task = self.client.process.create_task(work)
        self.scheduler.run_until(self.scheduler.now + seconds, task.done)
        return task.result()

    def connect(self) -> Peer:
        assert self.client.process is not None
        peer: Peer
        _, peer = self.run(self.client.process.create_connection(Peer, "server", PORT))
        self.pass_time(1.0)
        return peer

    def pass_time(self, seconds: float) -> None:
        self.scheduler.run_until(self.scheduler.now + seconds)


def test_bytes_arrive_in_order() -> None:
    for seed in range(20):
        world = World(seed)
        peer = world.connect()
        for number in range(100):
            peer.transport.write(b"%d," % number)
        world.pass_time(5.0)
        assert world.accepted[0].received == b"".join(b"%d," % number for number in range(100))


def test_what_a_cut_way_loses_arrives_when_it_is_mended() -> None:
    world = World()
    peer = world.connect()
    world.network.cut(world.client, world.server)
    peer.transport.write(b"one")
    world.pass_time(30.0)
    assert world.accepted[0].received == b""

    world.network.mend(world.client, world.server)
    peer.transport.write(b"two")
    world.pass_time(1.0)

    assert world.accepted[0].received == b"onetwo"


def test_nobody_listens_on_a_free_port() -> None:
    world = World()
    assert world.client.process is not None
    with pytest.raises(ConnectionRefusedError):
        world.run(world.client.process.create_connection(Peer, "server", PORT + 1))


def test_a_machine_without_power_does_not_answer() -> None:
    world = World()
    world.server.power_off()
    assert world.client.process is not None
    with pytest.raises(TimeoutError):
        world.run(world.client.process.create_connection(Peer, "server", PORT))


def test_the_connections_of_a_killed_process_end() -> None:
    world = World()
    peer = world.connect()
    world.server.kill()
    world.pass_time(1.0)

    assert [type(error) for error in peer.lost] == [ConnectionResetError]


def test_a_power_loss_is_noticed_when_the_machine_is_up_again() -> None:
    world = World()
    peer = world.connect()
    world.server.power_off()
    peer.transport.write(b"?")
    world.pass_time(10.0)
    assert peer.lost == []

    world.server.start_process()
    world.pass_time(1.0)

    assert [type(error) for error in peer.lost] == [ConnectionResetError]


def test_a_close_comes_after_what_was_written() -> None:
    world = World()
    peer = world.connect()
    peer.transport.write(b"last words")
    peer.transport.close()
    world.pass_time(1.0)

    (accepted,) = world.accepted
    assert accepted.received == b"last words"
    assert accepted.lost == [None]
    assert peer.lost == [None]


def test_who_does_not_read_makes_the_other_pause() -> None:
    world = World()
    peer = world.connect()
    paused: list[bool] = []
    peer.pause_writing = lambda: paused.append(True)  # type: ignore[method-assign]
    peer.resume_writing = lambda: paused.append(False)  # type: ignore[method-assign]
    world.accepted[0].transport.pause_reading()
    for _ in range(10):
        peer.transport.write(bytes(50_000))
    world.pass_time(1.0)
    assert paused == [True]

    world.accepted[0].transport.resume_reading()
    world.pass_time(1.0)

    assert paused == [True, False]
    assert len(world.accepted[0].received) == 500_000
