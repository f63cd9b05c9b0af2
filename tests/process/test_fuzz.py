"""Bytes that no client sends: each gets a clear error or a closed connection."""

import random
import socket
import struct
from collections.abc import Callable, Iterator

import pytest
from tests.broker_process import BrokerProcess
from tests.clients.wire import Wire
from tests.process.beside import ClientBeside, resident_bytes
from tests.process.every_api import NAME, sample_frames
from tests.process.topic_churn import create_topic

MEMORY_GROWTH_MAX = 256 * 1024 * 1024
PATIENCE_S = 0.1  # For a response, which the request may have asked to delay.
PING = bytes.fromhex("0000000a 0012 0000 000000ff ffff")  # ApiVersions v0.
FLIPS = 40

SAMPLES = list(sample_frames())
EDGES = [sample for sample in SAMPLES if sample.version in (3, 4)] + list(
    {sample.api_name: sample for sample in SAMPLES}.values()
)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("fuzz")) as process:
        yield process


@pytest.fixture(autouse=True)
def _unharmed(broker: BrokerProcess) -> Iterator[None]:
    """The broker is alive, its memory is bounded, nothing failed, and others were served."""
    with Wire(broker.bootstrap) as wire:
        create_topic(wire, NAME)  # An earlier test may have deleted it.
    pid, memory, log_size = broker.pid, resident_bytes(broker), len(broker.log_text())
    with ClientBeside(broker.bootstrap) as beside:
        yield
        beside.await_rounds(2)
    assert broker.pid == pid
    assert resident_bytes(broker) - memory < MEMORY_GROWTH_MAX
    log = broker.log_text()[log_size:]
    assert " ERROR " not in log, log
    assert "Traceback" not in log, log


class Attacker:
    """Keeps a connection until the broker closes it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def send(self, data: bytes) -> None:
        """Send bytes and see what happens: a response, the end, or nothing for a while."""
        try:
            connection = self._connection()
            connection.sendall(data + PING)
            if not connection.recv(1 << 16):
                self.drop()
        except (TimeoutError, ConnectionError):
            self.drop()

    def drop(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _connection(self) -> socket.socket:
        if self._socket is None:
            address = ("127.0.0.1", self._port)
            self._socket = socket.create_connection(address, timeout=PATIENCE_S)
        return self._socket


@pytest.fixture
def attack(broker: BrokerProcess) -> Iterator[Callable[[bytes], None]]:
    attacker = Attacker(broker.port)
    yield attacker.send
    attacker.drop()


@pytest.mark.parametrize("seed", range(3))
def test_random_bytes(attack: Callable[[bytes], None], seed: int) -> None:
    random_bytes = random.Random(seed)
    for _ in range(200):
        data = random_bytes.randbytes(random_bytes.randrange(1, 200))
        attack(data)
        attack(struct.pack(">i", len(data)) + data)


def test_samples_as_they_are(attack: Callable[[bytes], None]) -> None:
    for sample in SAMPLES:
        attack(sample.frame)


def test_frames_that_end_too_early(attack: Callable[[bytes], None]) -> None:
    for sample in EDGES:
        for size in range(len(sample.body)):
            attack(struct.pack(">i", size) + sample.body[:size])


def test_flipped_bits(attack: Callable[[bytes], None]) -> None:
    for number, sample in enumerate(SAMPLES):
        flips = random.Random(number)
        for _ in range(FLIPS):
            body = bytearray(sample.body)
            for _ in range(flips.choice((1, 1, 1, 2, 8))):
                body[flips.randrange(4, len(body))] ^= 1 << flips.randrange(8)
            attack(struct.pack(">i", len(body)) + body)


@pytest.mark.parametrize(
    "number", [b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\xff\xff\xff\xff\x0f"]
)
def test_enormous_and_negative_lengths_everywhere(
    attack: Callable[[bytes], None], number: bytes
) -> None:
    for sample in EDGES:
        for position in range(8, len(sample.body), 3):
            body = sample.body[:position] + number + sample.body[position + len(number) :]
            attack(struct.pack(">i", len(body)) + body)


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1, 104_857_601, 0, 1, 7])
def test_announced_sizes(attack: Callable[[bytes], None], size: int) -> None:
    attack(struct.pack(">i", size) + b"abc")


def test_many_large_frames_that_never_come(broker: BrokerProcess) -> None:
    """Each announces 100 MB, which must not be allocated before it arrives."""
    connections = [socket.create_connection(("127.0.0.1", broker.port)) for _ in range(50)]
    for connection in connections:
        connection.sendall(struct.pack(">i", 104_857_600) + bytes(20_000))
    for connection in connections:
        connection.close()


def test_every_key_and_version(attack: Callable[[bytes], None]) -> None:
    for key in (*range(100), 1000, -1):
        for version in (-1, 0, 99):
            attack(struct.pack(">ihhih", 10, key, version, 1, -1))
