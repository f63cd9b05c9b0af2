"""A proxy forwards bytes until told not to."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.cluster.faults.links import CLIENT, TIMEOUT_S, Links
from tests.ports import ReservedPort


@pytest.fixture
def links() -> Iterator[Links]:
    made = Links()
    yield made
    made.close()


@pytest.fixture
def echo_port() -> Iterator[int]:
    """The port of an echo server."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=echo, args=(connection,), daemon=True).start()

    def echo(connection: socket.socket) -> None:
        with connection, suppress(OSError):  # A proxy that stops may reset it.
            while data := connection.recv(1000):
                connection.sendall(data)

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


def request_of(client_id: bytes) -> bytes:
    header = struct.pack(">hhih", 1, 2, 3, len(client_id)) + client_id
    return struct.pack(">i", len(header)) + header


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)


def exchange(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return connection.recv(len(data), socket.MSG_WAITALL)


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(0.05)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(TIMEOUT_S)


@pytest.mark.parametrize(
    ("client_id", "source"), [(b"node-3", 3), (b"rdkafka", CLIENT), (b"node-12", 12)]
)
@pytest.mark.parametrize("back", [False, True])
def test_a_cut_stops_one_direction_until_it_is_healed(
    links: Links, echo_port: int, client_id: bytes, source: int, back: bool
) -> None:
    port = links.add(1, echo_port)
    data = request_of(client_id)
    with connect(port) as connection:
        assert exchange(connection, data) == data
        with links.without((1, source) if back else (source, 1)):
            connection.sendall(b"hello")
            assert is_silent(connection)
        assert connection.recv(5, socket.MSG_WAITALL) == b"hello"
        with links.without((source + 1, 1)):
            assert exchange(connection, b"again") == b"again"


def test_a_node_whose_bytes_nobody_can_read_is_known_by_its_process(
    links: Links, echo_port: int
) -> None:
    links.processes = {os.getpid(): 3}
    hello = bytes.fromhex("16030100c8")  # Of TLS.
    with connect(links.add(1, echo_port)) as connection:
        assert exchange(connection, hello) == hello
        with links.without((3, 1)):
            connection.sendall(b"hello")
            assert is_silent(connection)
        assert connection.recv(5, socket.MSG_WAITALL) == b"hello"
        with links.without((CLIENT, 1)):
            assert exchange(connection, b"again") == b"again"


def test_a_connection_ends_with_the_one_behind_it(links: Links) -> None:
    nobody = ReservedPort()
    port = links.add(1, nobody.number)
    with connect(port) as connection:
        connection.sendall(request_of(b"node-2"))
        assert connection.recv(1) == b""


def test_clients_of_a_node_are_disconnected_and_nothing_else(links: Links, echo_port: int) -> None:
    first, second = links.add(1, echo_port), links.add(2, echo_port)
    with connect(first) as client, connect(first) as node, connect(second) as elsewhere:
        for connection, name in (client, b"rdkafka"), (node, b"node-2"), (elsewhere, b"rdkafka"):
            assert exchange(connection, request_of(name)) == request_of(name)
        links.disconnect_clients(1)
        assert client.recv(1) == b""
        assert exchange(node, b"again") == b"again"
        assert exchange(elsewhere, b"again") == b"again"
