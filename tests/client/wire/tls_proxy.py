"""TLS in front of a plaintext broker, with certificates made by openssl."""

import contextlib
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


def make_certificate(directory: Path, name: str, host: str = "127.0.0.1") -> Path:
    """A file with a key and a self-signed certificate."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("certificates for this test are made by openssl, which is not there")
    key, certificate, both = (directory / f"{name}.{end}" for end in ("key", "crt", "pem"))
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    identity = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=IP:{host}", "-days", "2"]
    command: list[str | Path] = [
        openssl,
        "req",
        "-x509",
        *curve,
        *identity,
        "-keyout",
        key,
        "-out",
        certificate,
    ]
    subprocess.run(command, check=True, capture_output=True)
    both.touch(0o600)
    both.write_text(key.read_text() + certificate.read_text())
    return both


@contextlib.contextmanager
def tls_proxy(target_port: int, certificate: Path, clients: Path | None = None) -> Iterator[int]:
    """Returns a port; with `clients`, only those with a certificate from that file get through."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, context, target_port), daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(server: socket.socket, context: ssl.SSLContext, target_port: int) -> None:
    while True:
        try:
            peer, _ = server.accept()
        except OSError:
            return
        with (
            peer,
            contextlib.suppress(OSError),
            context.wrap_socket(peer, server_side=True) as safe,
            socket.create_connection(("127.0.0.1", target_port)) as broker,
        ):
            _exchange(safe, broker)


def _exchange(client: ssl.SSLSocket, broker: socket.socket) -> None:
    """Handles one request at a time."""
    while True:
        for source, target in ((client, broker), (broker, client)):
            size = _read(source, 4)
            target.sendall(size + _read(source, int.from_bytes(size)))


def _read(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data
