"""A TLS listener, and clients that trust its authority."""

import asyncio
import datetime as dt
import socket
import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.network.peer import LOOPBACK, echo, frame

from ottla.cli.secure.authority import CLIENTS_UNIT, NODES_UNIT, Identity, issue, new_authority
from ottla.network.config import NetworkConfig
from ottla.network.listener_security import ListenerSecurity
from ottla.network.security_config import ListenerConfig, SecurityConfig, SecurityProtocol
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.network.session_hub import Dispatch
from ottla.network.tls import TlsConfig, TlsContexts
from ottla.security.audit import Audit, Event
from ottla.security.principal import Principal

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

NOW = dt.datetime.now(dt.UTC)
AUTHORITY = new_authority("tests", NOW)
NODE = issue(AUTHORITY, "node-1", NODES_UNIT, ["localhost", "127.0.0.1"], NOW)
CLIENT = issue(AUTHORITY, "alice", CLIENTS_UNIT, [], NOW)


def stored(directory: Path, identity: Identity = NODE, mode: int = 0o600) -> TlsConfig:
    keystore, truststore = directory / "node.pem", directory / "ca.pem"
    keystore.write_bytes(identity.keystore)
    keystore.chmod(mode)
    truststore.write_bytes(AUTHORITY.certificate)
    return TlsConfig(keystore_location=str(keystore), truststore_location=str(truststore))


class Locked:
    """A listener for one test; it `keeps` the sessions it had."""

    def __init__(
        self,
        tls: TlsConfig,
        *,
        dispatch: Dispatch = echo,
        network: Mapping[str, Any] | None = None,
        timeout_ms: int = 30_000,
        keeps: bool = True,
        **more: Any,
    ) -> None:
        self.contexts = TlsContexts(tls)
        self.contexts.load()
        config = ListenerConfig("SSL", SecurityProtocol.SSL, tls, **more)
        users = frozenset({Principal("User", "node")})
        security = SecurityConfig({"SSL": config}, "SSL", users, timeout_ms=timeout_ms)
        self.audited: list[Event] = []
        audit = Audit(self.audited.append, lambda: 0.0)
        lock = ListenerSecurity(config, security, self.contexts, lambda: None, audit=audit)
        listeners = (LOOPBACK._replace(listener_name="SSL"),)
        self.came: list[Session] = []
        self.bodies: set[bytes] = set()  # Of their requests.
        self._answer = dispatch
        self._keeps = keeps
        self._writers: list[asyncio.StreamWriter] = []
        self.server = Server(
            replace(NetworkConfig(), listeners=listeners, **(network or {})),
            self._dispatch,
            monotonic_ms=lambda: 0.0,
            security={"SSL": lock},
        )

    def _dispatch(self, session: Session, body: memoryview) -> None:
        if self._keeps:
            self.came.append(session)
        self.bodies.add(bytes(body))
        self._answer(session, body)

    async def __aenter__(self) -> "Locked":
        await self.server.bind()
        self.server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hang_up()
        await self.server.stop(grace_s=0.0)

    async def hang_up(self) -> None:
        while self._writers:
            writer = self._writers.pop()
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)

    async def connect(
        self,
        tmp_path: Path | None = None,
        identity: Identity | None = None,
        *,
        receive_buffer: int = 0,
    ) -> Connection:
        context = ssl.create_default_context(cadata=AUTHORITY.certificate.decode())
        if identity is not None and tmp_path is not None:
            path = tmp_path / "client.pem"
            path.write_bytes(identity.keystore)
            context.load_cert_chain(path)
        address = ("127.0.0.1", self.server.endpoints[0].port)
        connected = socket.socket()
        connected.setblocking(False)
        if receive_buffer:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(connected, address)
        reader, writer = await asyncio.open_connection(
            sock=connected, ssl=context, server_hostname="127.0.0.1"
        )
        self._writers.append(writer)
        return reader, writer

    async def exchange(self, connection: Connection, body: bytes) -> bytes:
        reader, writer = connection
        writer.write(frame(body))
        return (await reader.readexactly(4 + len(body)))[4:]
