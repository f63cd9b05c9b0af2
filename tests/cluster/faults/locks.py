"""Security for a cluster under faults: certificates among nodes, logins and ACLs for clients.

Each node has three listeners. Nodes use TLS with certificates, clients use passwords (SCRAM) or
certificates over TLS, and both connect through proxies. The third is plaintext: there the trial
checks readiness and the quorum leader, and nothing else is permitted.
"""

import datetime as dt
import enum
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from tests.cluster.faults.links import Links
from tests.ports import HOST, ReservedPort

from ottla.cli.secure.authority import CLIENTS_UNIT, NODES_UNIT, Identity, issue, new_authority
from ottla.cli.secure.settings import NODES_USER
from ottla.node.users_file import format_users
from ottla.security.scram import SCRAM_MECHANISMS, new_credential

ADMIN, WRITER, READER, COPIER, STRANGER = "admin", "writer", "reader", "copier", "stranger"
PASSWORD: Final = "of every user"
MECHANISM: Final = "SCRAM-SHA-512"
_CONFIG: Final = f"""\
inter.broker.listener.name: NODES
ssl.keystore.location: node.pem
ssl.truststore.location: ca.pem
listener.name.nodes.ssl.client.auth: required
listener.name.nodes.ssl.principal.mapping.rules: "RULE:^CN=[^,]*,OU=ottla-nodes$/{NODES_USER}/"
sasl.enabled.mechanisms: {MECHANISM}
authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users: User:{ADMIN};User:{NODES_USER}
initial.users.file: users.json
listener.security.protocol.map: PLAINTEXT:PLAINTEXT,NODES:SSL,CLIENTS:"""


class ClientsBy(enum.Enum):
    """How clients authenticate."""

    PASSWORDS = "passwords"
    CERTIFICATES = "certificates"


_CLIENTS: Final = {
    ClientsBy.PASSWORDS: "SASL_SSL\n",
    ClientsBy.CERTIFICATES: f"""SSL
listener.name.clients.ssl.client.auth: required
listener.name.clients.ssl.principal.mapping.rules: "RULE:^CN=([^,]*),OU={CLIENTS_UNIT}$/$1/"
""",
}


class Locks:
    def __init__(self, directory: Path, links: Links, by: ClientsBy) -> None:
        self._directory = directory / "locks"
        self._directory.mkdir()
        self._links = links
        self._by = by
        now = dt.datetime.now(dt.UTC)
        self._authority: Identity = new_authority("trial", now)
        (self._directory / "ca.pem").write_bytes(self._authority.certificate)
        self._users = _users()
        self._ports: list[ReservedPort] = []
        self._nodes: dict[int, str] = {}  # Where other nodes and clients connect.
        self._clients: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(self._clients.values())

    def join_address(self, node_id: int) -> str:
        return self._nodes[node_id]

    def arguments(self, node_id: int, open_port: int) -> tuple[str, ...]:
        """Arguments of `ottla serve`; `open_port` is the plaintext listener's."""
        listeners, advertised = [f"PLAINTEXT://{HOST}:{open_port}"], []
        for name, addresses in (("NODES", self._nodes), ("CLIENTS", self._clients)):
            port = ReservedPort()
            self._ports.append(port)
            addresses[node_id] = f"{HOST}:{self._links.add(node_id, port.number)}"
            listeners.append(f"{name}://{HOST}:{port}")
            advertised.append(f"{name}://{addresses[node_id]}")
        return (
            *("--config", str(self._write(node_id))),
            *(word for listener in listeners for word in ("--listener", listener)),
            *("--set", f"advertised.listeners={','.join([listeners[0], *advertised])}"),
        )

    def _write(self, node_id: int) -> Path:
        directory = self._directory / f"node-{node_id}"
        directory.mkdir()
        contents = {
            "ca.pem": self._authority.certificate,
            "users.json": self._users,
            "broker.yaml": (_CONFIG + _CLIENTS[self._by]).encode(),
        }
        for name, content in contents.items():
            _write_private(directory / name, content)
        self.renew(node_id)
        return directory / "broker.yaml"

    def renew(self, node_id: int) -> None:
        """Renews a node's key and certificate, which a running node reloads by itself."""
        names, now = [HOST, "localhost"], dt.datetime.now(dt.UTC)
        identity = issue(self._authority, f"node-{node_id}", NODES_UNIT, names, now)
        directory = self._directory / f"node-{node_id}"
        _write_private(directory / "node.new", identity.keystore)
        (directory / "node.new").replace(directory / "node.pem")

    def login(self, user: str) -> Mapping[str, object]:
        """Settings of a client."""
        return self._login(user, PASSWORD, self._authority)

    def forged_login(self, user: str) -> Mapping[str, object]:
        """With another user's name, without its credentials."""
        return self._login(user, "a guess", new_authority("trial", dt.datetime.now(dt.UTC)))

    def _login(self, user: str, password: str, authority: Identity) -> Mapping[str, object]:
        trusted = {"ssl.ca.location": str(self._directory / "ca.pem")}
        if self._by is ClientsBy.CERTIFICATES:
            identity = issue(authority, user, CLIENTS_UNIT, [], dt.datetime.now(dt.UTC))
            return {
                **trusted,
                "security.protocol": "SSL",
                "ssl.certificate.pem": identity.certificate.decode(),
                "ssl.key.pem": identity.key.decode(),
            }
        return {
            **trusted,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
        }

    def grant(self, admin: AdminClient, records: str, copies: str) -> None:
        """The access that each user needs, and nothing else."""
        topic, group = ResourceType.TOPIC, ResourceType.GROUP
        transactional_id, prefixed = ResourceType.TRANSACTIONAL_ID, ResourcePatternType.PREFIXED
        read, write = AclOperation.READ, AclOperation.WRITE
        bindings = [
            _entry(WRITER, topic, records, write),
            *(_entry(READER, topic, name, read) for name in (records, copies)),
            *(_entry(READER, group, name, read) for name in ("readers", "contents")),
            _entry(COPIER, topic, records, read),
            _entry(COPIER, topic, copies, write),
            _entry(COPIER, group, "copiers", read),
            _entry(COPIER, transactional_id, "copier-", write, prefixed),
            _entry("ANONYMOUS", ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE),
        ]
        for created in admin.create_acls(bindings, request_timeout=120).values():
            created.result()


def _write_private(path: Path, content: bytes) -> None:
    path.touch(0o600)
    path.write_bytes(content)


def _entry(
    user: str,
    kind: ResourceType,
    name: str,
    operation: AclOperation,
    pattern: ResourcePatternType = ResourcePatternType.LITERAL,
) -> AclBinding:
    allow = AclPermissionType.ALLOW
    return AclBinding(kind, name, pattern, f"User:{user}", "*", operation, allow)


def _users() -> bytes:
    mechanism = SCRAM_MECHANISMS[MECHANISM]
    users = {
        (name, int(mechanism)): new_credential(mechanism, PASSWORD, name.encode() * 4, 4096)
        for name in (ADMIN, WRITER, READER, COPIER, STRANGER)
    }
    return format_users(users).encode()
