"""`ottla secure init`: everything that a locked cluster needs, in one directory.

    ca.pem, ca-key.pem            the authority; its key belongs on no node
    nodes/<host>/                 copy this to the node: broker.yaml, node.pem, ca.pem, users.json
    clients/admin.properties      how the administrator logs in, for --command-config and Java
    clients/admin.pem             a certificate for clients that use one instead

What is there is never changed, so that a second run only adds nodes.
"""

import datetime as dt
import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Final

from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_line
from ottla.cli.secure.settings import broker_yaml, client_properties, client_settings
from ottla.network.endpoints import parse_endpoint
from ottla.node.users_file import format_users
from ottla.security.scram import SALT_BYTES, ScramMechanism, new_credential

ADMIN: Final = "admin"
ITERATIONS: Final = 8_192
PASSWORD_BYTES: Final = 24
_ALSO: Final = ("localhost", "127.0.0.1", "::1")  # Names that every node has for itself.


def init(*, hosts: str | None = None, directory: Path = Path("secure"), port: int = 9092) -> None:
    """Create a CA, certificates, an administrator and the configuration of each node.

    Run it again with other hosts to add nodes; existing files are kept.

    Args:
        hosts: Names or addresses of the nodes, comma-separated. [default: this machine's name]
        directory: Where to write everything.
        port: Port for clients; nodes use the next one among themselves.
    """
    names = [host.strip() for host in (hosts or socket.gethostname()).split(",") if host.strip()]
    for name in names:
        try:
            parse_endpoint(f"X://{f'[{name}]' if ':' in name else name}:1")
        except ValueError:
            raise UsageError(f"--hosts: {name!r} is no name or address of a host") from None
    if not 0 < port < (1 << 16) - 1:
        raise UsageError(f"--port {port} is not from 1 to 65534")
    cluster = Cluster(directory, port)
    cluster.begin()
    added = [name for name in names if cluster.add_node(name)]
    if not added:
        print_line(f"{directory} has all of these nodes already; nothing was changed")
        return
    print_line(_next_steps(cluster, added))


class Cluster:
    def __init__(self, directory: Path, port: int = 9092) -> None:
        try:
            from ottla.cli.secure import authority
        except ImportError:
            raise CommandError(
                "this needs the library cryptography: pip install 'ottla[secure]'"
            ) from None
        self._library = authority
        self._now = dt.datetime.now(dt.UTC)
        self.directory = directory
        self.port = port
        self.clients = directory / "clients"

    def begin(self) -> None:
        """The authority and the administrator, unless they are there."""
        for path in (self.directory, self.clients, self.directory / "nodes"):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = self.directory / "ca-key.pem"
        if not key.exists():
            authority = self._library.new_authority("Ottla cluster", self._now)
            write_private(self.directory / "ca.pem", authority.certificate)
            write_private(key, authority.key)
        if not (self.directory / "users.json").exists():
            password = secrets.token_urlsafe(PASSWORD_BYTES)
            users = {
                (ADMIN, int(mechanism)): new_credential(
                    mechanism, password, secrets.token_bytes(SALT_BYTES), ITERATIONS
                )
                for mechanism in ScramMechanism
            }
            write_private(self.clients / "admin.password", f"{password}\n".encode())
            write_private(self.directory / "users.json", format_users(users).encode())
            unit = self._library.CLIENTS_UNIT
            admin = self._library.issue(self.authority, ADMIN, unit, [], self._now)
            write_private(self.clients / "admin.pem", admin.keystore)
            write_private(self.clients / "ca.pem", self.authority.certificate)

    @property
    def authority(self) -> "authority.Identity":  # type: ignore[name-defined]
        certificate = (self.directory / "ca.pem").read_bytes()
        return self._library.Identity(certificate, (self.directory / "ca-key.pem").read_bytes())

    @property
    def nodes(self) -> list[Path]:
        """In the order of their numbers."""
        found = (path.parent for path in (self.directory / "nodes").glob("*/broker.yaml"))
        return sorted(found, key=lambda node: _node_id(node / "broker.yaml"))

    def new_keystore(self, host: str) -> bytes:
        """A new key of a node, and its certificate."""
        names = list(dict.fromkeys((host, *_ALSO)))
        unit = self._library.NODES_UNIT
        keystore: bytes = self._library.issue(self.authority, host, unit, names, self._now).keystore
        return keystore

    def add_node(self, host: str) -> bool:
        """False if it is there."""
        node = self.directory / "nodes" / host.replace(":", "_")
        if (node / "broker.yaml").exists():
            return False
        nodes = self.nodes
        first = nodes[0].name.replace("_", ":") if nodes else None
        number = 1 + max((_node_id(directory / "broker.yaml") for directory in nodes), default=0)
        node.mkdir(mode=0o700, exist_ok=True)
        write_private(node / "node.pem", self.new_keystore(host))
        write_private(node / "ca.pem", self.authority.certificate)
        write_private(node / "users.json", (self.directory / "users.json").read_bytes())
        text = broker_yaml(number, host, self.port, first)
        write_private(node / "broker.yaml", text.encode())
        properties = self.clients / "admin.properties"
        if not properties.exists():
            password = (self.clients / "admin.password").read_text().strip()
            text = client_properties(host, self.port, ADMIN, password)
            write_private(properties, text.encode())
        return True


def write_private(path: Path, content: bytes) -> None:
    """A file that nobody else can read; one that is there is an error."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(content)


def _node_id(path: Path) -> int:
    import yaml

    return int(yaml.safe_load(path.read_text(encoding="utf-8"))["node.id"])


def _next_steps(cluster: Cluster, added: list[str]) -> str:
    lines = [f"Wrote {cluster.directory}. Keep {cluster.directory}/ca-key.pem off the nodes.", ""]
    first = cluster.nodes[0].name.replace("_", ":")
    for host in added:
        folder = cluster.directory / "nodes" / host.replace(":", "_")
        start = "ottla serve --config broker.yaml" + (" --new-cluster" if host == first else "")
        lines += [f"On {host}, copy {folder} there, and in it run:", f"  {start}", ""]
    if first in added:
        lines.append("--new-cluster is for the first start only. Clients of the administrator:")
        lines.append(client_settings(cluster.clients, first, cluster.port, ADMIN))
    sys.stdout.flush()
    return "\n".join(lines).rstrip()
