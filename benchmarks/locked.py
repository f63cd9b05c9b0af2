"""A broker with two listeners: one plaintext, one with TLS."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks import processes
from benchmarks.bench import Bench, wait_until_ready
from benchmarks.peers.peer import ClusterPeer, Flush, Member, Server, log_path

_HOST = "127.0.0.1"


class LockedServer(NamedTuple):
    """The two listeners of one process."""

    plain: Server
    tls: Server
    authority: Path


@contextmanager
def locked_server(bench: Bench, peer: ClusterPeer) -> Iterator[LockedServer]:
    directory = bench.new_directory(peer)
    directory.mkdir(parents=True)
    port, controller_port, tls_port = (processes.free_port() for _ in range(3))
    member = Member(1, directory, port, controller_port)
    settings = _settings(member, tls_port)
    write_identity(directory)
    peer.format_member([member], member, settings)
    command = peer.member_command([member], member, Flush.OS, settings)
    process = processes.spawn(command, log_path(directory))
    plain = Server(peer, directory, port, process)
    try:
        wait_until_ready(plain)
        yield LockedServer(plain, Server(peer, directory, tls_port, process), directory / "ca.pem")
    finally:
        plain.stop()


def write_identity(directory: Path) -> None:
    """A key and certificate for a broker on this machine, and its authority's certificate."""
    from ottla.cli.secure.authority import NODES_UNIT, issue, new_authority

    now = dt.datetime.now(dt.UTC)
    authority = new_authority("benchmark", now)
    keystore = directory / "node.pem"
    keystore.touch(0o600)
    keystore.write_bytes(issue(authority, "node", NODES_UNIT, [_HOST], now).keystore)
    (directory / "ca.pem").write_bytes(authority.certificate)


def _settings(member: Member, tls_port: int) -> dict[str, str]:
    """The settings, for both kinds of broker."""
    clients = f"PLAINTEXT://{_HOST}:{member.port},SSL://{_HOST}:{tls_port}"
    return {
        "listeners": clients,
        "advertised.listeners": clients,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(member.directory / "node.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(member.directory / "ca.pem"),
    }
