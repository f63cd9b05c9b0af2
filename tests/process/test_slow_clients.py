"""Clients that read or write slowly, vanish, or come in crowds: others are still served."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker_process import BrokerProcess
from tests.clients.confluent_client import ConfluentClient
from tests.clients.requests import batch, fetch, metadata, produce, produced
from tests.clients.wire import Wire
from tests.kits.raw_requests import request_frame
from tests.process.beside import ClientBeside, open_files, resident_bytes

from ottla.protocol.errors import ErrorCode

MEGABYTE = 1024 * 1024
TOPIC = "large"
CONNECTIONS = 2000
TIMEOUT_S = 120
ROUNDS_BESIDE = 20
PING = bytes.fromhex("0000000a 0012 0000 000000ff ffff")  # ApiVersions v0.


def frame_of(request: Any, correlation_id: int = 1) -> bytes:
    return request_frame(request, correlation_id, "slow")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("slow"), "--set", "flush.policy=os") as process:
        ConfluentClient(process.bootstrap).create_topic(TOPIC)
        yield process


def _fill(bootstrap: str, megabytes: int) -> None:
    records = batch(bytes(MEGABYTE - 1000))
    with Wire(bootstrap) as wire:
        for _ in range(megabytes):
            assert produced(wire.call(produce(TOPIC, records))).error_code == ErrorCode.none


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)


def test_readers_that_never_read(broker: BrokerProcess) -> None:
    """Ten of them request 100 MB each, in many requests; none of it accumulates in memory."""
    _fill(broker.bootstrap, 100)
    memory = resident_bytes(broker)
    with contextlib.ExitStack() as stack:
        for _ in range(10):
            reader = stack.enter_context(_connect(broker.port))
            for correlation_id in range(50):
                reader.sendall(frame_of(fetch(TOPIC, 0, max_bytes=100 * MEGABYTE), correlation_id))
        with ClientBeside(broker.bootstrap) as beside:
            beside.await_rounds(ROUNDS_BESIDE)
        assert resident_bytes(broker) - memory < 100 * MEGABYTE


def test_a_writer_of_single_bytes(broker: BrokerProcess) -> None:
    frame = frame_of(produce(TOPIC, batch(b"slowly")))
    with _connect(broker.port) as writer, ClientBeside(broker.bootstrap) as beside:
        writer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in frame:
            writer.sendall(bytes([byte]))
        beside.await_rounds(ROUNDS_BESIDE)
        (size,) = struct.unpack(">i", writer.recv(4))
        assert size > 0


def test_crowds_that_come_and_go(broker: BrokerProcess) -> None:
    files = open_files(broker)
    with ClientBeside(broker.bootstrap) as beside:
        for number in range(CONNECTIONS):
            with _connect(broker.port) as connection:
                if number % 3 == 0:
                    connection.sendall(PING[: number % len(PING)])
                elif number % 3 == 1:
                    connection.sendall(PING)
        beside.await_rounds(ROUNDS_BESIDE)
    with Wire(broker.bootstrap) as wire:
        while open_files(broker) > files + 10:
            assert wire.call(metadata()).brokers


def test_a_crowd_that_stays(broker: BrokerProcess) -> None:
    memory = resident_bytes(broker)
    with contextlib.ExitStack() as stack:
        crowd = [stack.enter_context(_connect(broker.port)) for _ in range(CONNECTIONS)]
        for connection in crowd:
            connection.sendall(PING + PING[:7])
        for connection in crowd:
            assert connection.recv(4)
        with ClientBeside(broker.bootstrap) as beside:
            beside.await_rounds(ROUNDS_BESIDE)
        assert resident_bytes(broker) - memory < 100 * MEGABYTE


def test_ten_thousand_requests_at_once(broker: BrokerProcess) -> None:
    """The responses come in order, and other clients do not wait for the last one."""
    count = 10_000
    frames = b"".join(frame_of(metadata(), number) for number in range(count))
    with _connect(broker.port) as greedy, ClientBeside(broker.bootstrap) as beside:
        greedy.setblocking(False)
        sent = greedy.send(frames)
        beside.await_rounds(ROUNDS_BESIDE)
        greedy.settimeout(TIMEOUT_S)
        answers = greedy.makefile("rb")
        with sending(greedy, frames[sent:]):
            for number in range(count):
                size, correlation_id = struct.unpack(">ii", answers.read(8))
                assert correlation_id == number
                answers.read(size - 4)
        answers.close()


@contextlib.contextmanager
def sending(connection: socket.socket, data: bytes) -> Iterator[None]:
    """Send while the block runs; finished when it ends."""
    sender = threading.Thread(target=connection.sendall, args=(data,))
    sender.start()
    yield
    sender.join()


def test_fetches_that_wait_end_with_their_connections(broker: BrokerProcess) -> None:
    """Each would wait for a day; its memory is freed once its client is gone."""
    day_ms = 86_400_000
    request = frame_of(fetch(TOPIC, 100, max_wait_ms=day_ms, min_bytes=2**31 - 1))

    def attack(count: int) -> None:
        for _ in range(count):
            with _connect(broker.port) as connection:
                connection.sendall(PING + request * 200)
                assert connection.recv(4)

    attack(20)
    memory = resident_bytes(broker)
    attack(100)
    with ClientBeside(broker.bootstrap) as beside:
        beside.await_rounds(ROUNDS_BESIDE)
    assert resident_bytes(broker) - memory < 20 * MEGABYTE


@pytest.mark.parametrize("key", ["max.connections", "max.connections.per.ip"])
def test_limits_of_connections(tmp_path: Path, key: str) -> None:
    limit = 20
    with BrokerProcess(tmp_path, "--set", f"{key}={limit}") as limited:
        with contextlib.ExitStack() as stack:
            wires = [stack.enter_context(_served(limited.bootstrap)) for _ in range(limit)]
            assert stack.enter_context(Wire(limited.bootstrap)).is_closed_by_peer()
            assert wires[0].call(metadata()).brokers
        with _served(limited.bootstrap):
            assert key in limited.log_text()


def _served(bootstrap: str) -> Wire:
    """An accepted connection; the broker may not have noticed yet that others ended."""
    while True:
        wire = Wire(bootstrap)
        try:
            assert wire.call(metadata()).brokers
            return wire
        except (EOFError, ConnectionError):
            wire.__exit__(None, None, None)
