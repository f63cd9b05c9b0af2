"""NATS with JetStream, one node, from Debian's package, which is unpacked and not installed.

It speaks another protocol, so only comparable things are measured: start, idle memory, and small
messages acknowledged one by one. Streams are files; JetStream syncs them every two minutes, which
is close to Ottla's flush policy `os`.
"""

import json
import socket
import subprocess
import time
from pathlib import Path

from benchmarks.debian import unpack
from benchmarks.peers.guest import Guest
from benchmarks.peers.peer import Flush

STREAM, SUBJECT, INBOX = "B", "bench", "_in"


class Nats(Guest):
    name = "nats"

    def __init__(self) -> None:
        self._server = Path()

    def prepare(self, cache: Path) -> None:
        home = cache / "nats"
        self._server = home / "usr" / "sbin" / "nats-server"
        if self._server.exists():
            return
        unpack(home, "nats-server")

    def settings(self) -> dict[str, str]:
        shown = subprocess.run(
            [self._server, "--version"], capture_output=True, text=True, check=True
        )
        version = shown.stdout.strip().rpartition("v")[2]
        return {"NATS": f"{version}, JetStream with file storage, defaults"}

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        del flush  # A file stream has one policy.
        listen = ["--addr", "127.0.0.1", "--port", str(port)]
        return [str(self._server), *listen, "--jetstream", "--store_dir", str(directory)]


def connect(address: str) -> socket.socket:
    """A connection subscribed to the inbox."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.recv(1 << 16)
    options = json.dumps({"verbose": False, "pedantic": False})
    connection.sendall(f"CONNECT {options}\r\nSUB {INBOX} 1\r\n".encode())
    return connection


def create_stream(connection: socket.socket, seconds_max: float = 10.0) -> None:
    """Retries until JetStream is ready."""
    config = json.dumps({"name": STREAM, "subjects": [SUBJECT], "storage": "file"}).encode()
    request = publication(f"$JS.API.STREAM.CREATE.{STREAM}", config)
    deadline = time.perf_counter() + seconds_max
    while time.perf_counter() < deadline:
        connection.sendall(request)
        if b'"did_create"' in connection.recv(1 << 16):
            return
    raise TimeoutError("JetStream made no stream")


def publication(subject: str, data: bytes) -> bytes:
    return f"PUB {subject} {INBOX} {len(data)}\r\n".encode() + data + b"\r\n"
