"""Nodes that log in to each other by SCRAM."""

import asyncio
from dataclasses import replace

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from tests.network.peer import Run
from tests.network.test_sasl_gate import ALICE, locked

from ottla.network.peer_login import PeerLogin, parse_jaas
from ottla.network.peers import Peers, PeerUnreachable
from ottla.protocol.addresses import Address
from ottla.protocol.codec import write_request

LOGIN = PeerLogin("SCRAM-SHA-256", "alice", "alice's")
REQUEST = ApiVersionsRequest(client_software_name="node", client_software_version="1")


async def came_through(login: PeerLogin | None) -> list[tuple[object, bool]]:
    """The principal of each request, and whether it is a node. The server's answer is invalid."""
    async with locked() as served:
        endpoint = served.server.endpoints[0]
        peers = Peers(asyncio.get_running_loop(), "node-2", lambda: 0.5, None, login)
        address = Address(endpoint.host, endpoint.port)

        def build(correlation_id: int) -> bytes:
            return write_request(18, 4, correlation_id, "node-2", REQUEST)

        with pytest.raises(PeerUnreachable):
            await peers.call_frame(address, build, purpose="", timeout_ms=60_000)
        peers.close()
        return [(principal, is_node) for principal, is_node, _ in served.came]


def test_a_node_that_knows_its_password_is_let_in_as_a_node(run: Run) -> None:
    async def main() -> None:
        assert await came_through(LOGIN) == [(ALICE, True)]

    run(main())


def test_a_node_with_a_wrong_password_sends_nothing(run: Run) -> None:
    async def main() -> None:
        assert await came_through(replace(LOGIN, password="wrong")) == []
        assert await came_through(replace(LOGIN, mechanism="SCRAM-SHA-512", username="eve")) == []

    run(main())


def test_the_login_is_written_as_kafka_writes_it() -> None:
    text = r"""ScramLoginModule required username="node" password="a\"b\\c";"""
    login = parse_jaas("SCRAM-SHA-512", text)
    assert (login.username, login.password) == ("node", 'a"b\\c')
    assert login.password not in repr(login)
    with pytest.raises(ValueError, match="no password"):
        parse_jaas("SCRAM-SHA-512", 'required username="node";')
