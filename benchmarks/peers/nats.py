"""NATS with JetStream, one node, from Debian's package, which is unpacked and not installed.

It speaks another protocol, so only what can be compared is: start, idle memory, and small messages
that are acknowledged one by one. Streams are on file; JetStream syncs them every two minutes, which
is close to Ottla's flush policy `os`.
"""

import json
import shutil
import socket
import subprocess
import time
from pathlib import Path

from benchmarks.peers.peer import Flush, Unavailable

STREAM, SUBJECT, INBOX = "B", "bench", "_in"
DOWNLOAD_SECONDS_MAX = 120


class Nats:
    name = "nats"

    def __init__(self) -> None:
        self._server = Path()

    def prepare(self, cache: Path) -> None:
        home = cache / "nats"
        self._server = home / "usr" / "sbin" / "nats-server"
        if self._server.exists():
            return
        if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
            raise Unavailable("NATS is taken from Debian's package")
        home.mkdir(parents=True, exist_ok=True)
        try:
            self._run(home, "apt-get", "download", "nats-server")
            package = next(home.glob("nats-server_*.deb"))
            self._run(home, "dpkg", "-x", str(package), str(home))
        except (subprocess.SubprocessError, StopIteration) as error:
            raise Unavailable(f"NATS could not be downloaded: {error}") from error

    def _run(self, directory: Path, *command: str) -> None:
        subprocess.run(
            command, cwd=directory, check=True, capture_output=True, timeout=DOWNLOAD_SECONDS_MAX
        )

    def settings(self) -> dict[str, str]:
        shown = subprocess.run(
            [self._server, "--version"], capture_output=True, text=True, check=True
        )
        version = shown.stdout.strip().rpartition("v")[2]
        return {"NATS": f"{version}, JetStream with file storage, defaults"}

    def format(self, directory: Path, port: int) -> None:
        del directory, port  # The server does this when it starts.

    def command(self, directory: Path, port: int, flush: Flush) -> list[str]:
        del flush  # A file stream has one policy.
        listen = ["--addr", "127.0.0.1", "--port", str(port)]
        return [str(self._server), *listen, "--jetstream", "--store_dir", str(directory)]

    def topic_config(self, flush: Flush) -> dict[str, str]:
        del flush
        return {}

    def shares_server(self) -> bool:
        return True

    def warm_seconds(self) -> float:
        return 3.0


def connect(address: str) -> socket.socket:
    """A connection that receives what is sent to the inbox."""
    host, _, port = address.rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.recv(1 << 16)
    options = json.dumps({"verbose": False, "pedantic": False})
    connection.sendall(f"CONNECT {options}\r\nSUB {INBOX} 1\r\n".encode())
    return connection


def create_stream(connection: socket.socket, seconds_max: float = 10.0) -> None:
    """Asks until JetStream is ready."""
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
