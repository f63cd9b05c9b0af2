"""Locks for a cluster that is disturbed: certificates among nodes, logins and ACLs for clients.

Each node has three listeners. Nodes talk to each other by TLS with certificates, clients log in by
SCRAM over TLS, and both come by proxies. The third has no lock: the test asks there whether a node
is ready and who leads the quorum, and whoever comes by it may do no more than that.
"""

import datetime as dt
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

from ottla.cli.secure.authority import NODES_UNIT, Identity, issue, new_authority
from ottla.cli.secure.settings import NODES_USER
from ottla.node.users_file import format_users
from ottla.security.scram import SCRAM_MECHANISMS, new_credential

ADMIN, WRITER, READER, COPIER, STRANGER = "admin", "writer", "reader", "copier", "stranger"
PASSWORD: Final = "of every user"
MECHANISM: Final = "SCRAM-SHA-512"
_CONFIG: Final = f"""\
listener.security.protocol.map: PLAINTEXT:PLAINTEXT,NODES:SSL,CLIENTS:SASL_SSL
inter.broker.listener.name: NODES
ssl.keystore.location: node.pem
ssl.truststore.location: ca.pem
listener.name.nodes.ssl.client.auth: required
listener.name.nodes.ssl.principal.mapping.rules: "RULE:^CN=[^,]*,OU=ottla-nodes$/{NODES_USER}/"
sasl.enabled.mechanisms: {MECHANISM}
authorizer.class.name: org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users: User:{ADMIN};User:{NODES_USER}
initial.users.file: users.json
"""


class Locks:
    def __init__(self, directory: Path, links: Links) -> None:
        self._directory = directory / "locks"
        self._directory.mkdir()
        self._links = links
        now = dt.datetime.now(dt.UTC)
        self._authority: Identity = new_authority("trial", now)
        (self._directory / "ca.pem").write_bytes(self._authority.certificate)
        self._users = _users()
        self._ports: list[ReservedPort] = []
        self._nodes: dict[int, str] = {}  # Where others reach a node, and clients do.
        self._clients: dict[int, str] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(self._clients.values())

    def join_address(self, node_id: int) -> str:
        return self._nodes[node_id]

    def arguments(self, node_id: int, open_port: int) -> tuple[str, ...]:
        """Of `ottla serve`; `open_port` is that of the listener without a lock."""
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
        names, now = [HOST, "localhost"], dt.datetime.now(dt.UTC)
        identity = issue(self._authority, f"node-{node_id}", NODES_UNIT, names, now)
        contents = {
            "node.pem": identity.keystore,
            "ca.pem": self._authority.certificate,
            "users.json": self._users,
            "broker.yaml": _CONFIG.encode(),
        }
        for name, content in contents.items():
            path = directory / name
            path.touch(0o600)
            path.write_bytes(content)
        return directory / "broker.yaml"

    def login(self, user: str, password: str = PASSWORD) -> Mapping[str, object]:
        """Settings of a client."""
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password,
            "ssl.ca.location": str(self._directory / "ca.pem"),
        }

    def grant(self, admin: AdminClient, records: str, copies: str) -> None:
        """What each user needs for its work, and nothing else."""
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
