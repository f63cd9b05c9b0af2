"""Logins on a real socket: what is accepted before one, what fails, what expires."""

import asyncio
import contextlib
import struct
import threading
from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from tests.network.peer import LOOPBACK, Peer, Run, frame, peer_of

from ottla.network.config import NetworkConfig
from ottla.network.listener_security import ListenerSecurity
from ottla.network.security_config import ListenerConfig, SecurityConfig, SecurityProtocol
from ottla.network.server import Server
from ottla.network.session import Session
from ottla.protocol.codec import read_response, write_request
from ottla.protocol.errors import ErrorCode
from ottla.security.authorizer import Access
from ottla.security.delegation_tokens import TokenLogin
from ottla.security.exchange import Credentials
from ottla.security.plain import plain_message
from ottla.security.principal import Principal
from ottla.security.scram import ScramCredential, ScramMechanism, new_credential, unknown_user
from ottla.security.scram_client import ScramClient

SHA_256 = ScramMechanism.SCRAM_SHA_256
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN")
CONFIG = ListenerConfig(
    "SASL", SecurityProtocol.SASL_PLAINTEXT, mechanisms=MECHANISMS, reauthenticate_ms=0
)
ALICE = Principal("User", "alice")


class Users:
    def scram(self, mechanism: ScramMechanism, username: str) -> ScramCredential:
        if username in ("alice", "bob"):
            return new_credential(mechanism, f"{username}'s", b"salt")
        return unknown_user(mechanism, username, b"secret", 4096)

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        return None


USERS = Users()


class Clock:
    now_ms = 0.0

    def __call__(self) -> float:
        return self.now_ms


class Served:
    """What got through the gate, and from whom."""

    def __init__(self, server: Server, clock: Clock) -> None:
        self.server = server
        self.clock = clock
        self.came: list[tuple[Principal, bool, bytes]] = []

    def dispatch(self, session: Session, body: memoryview) -> None:
        self.came.append((session.principal, session.may_act_as_node, bytes(body)))
        session.send_now(frame(b"ok"))


@contextlib.asynccontextmanager
async def locked(
    config: ListenerConfig = CONFIG,
    *,
    users: Credentials | None = USERS,
    executor: Executor | None = None,
    login_executor: Executor | None = None,
    **security: Any,
) -> AsyncIterator[Served]:
    whole = SecurityConfig(
        {"SASL": config},
        "SASL",
        **{"failure_delay_ms": 1, "super_users": frozenset({ALICE}), **security},
    )
    lock = ListenerSecurity(config, whole, None, lambda: users)
    network = replace(NetworkConfig(), listeners=(LOOPBACK._replace(listener_name="SASL"),))
    clock = Clock()
    served: Served

    def dispatch(session: Session, body: memoryview) -> None:
        served.dispatch(session, body)

    locks = {"SASL": lock}
    server = Server(
        network,
        dispatch,
        monotonic_ms=clock,
        security=locks,
        executor=executor,
        login_executor=login_executor,
    )
    served = Served(server, clock)
    await server.bind()
    server.start()
    try:
        yield served
    finally:
        await server.stop(grace_s=0.0)


async def call(peer: Peer, request: Any, version: int) -> Any:
    await peer.send(write_request(request.__api_key__, version, 7, "test", request))
    body = memoryview(await peer.receive_frame())
    return read_response(request.__api_key__, version, body)[1]


async def shake(peer: Peer, mechanism: str = "SCRAM-SHA-256", version: int = 1) -> Any:
    return await call(peer, SaslHandshakeRequest(mechanism=mechanism), version)


async def say(peer: Peer, message: bytes, version: int = 2) -> Any:
    return await call(peer, SaslAuthenticateRequest(auth_bytes=message), version)


async def log_in(peer: Peer, username: str = "alice", password: str = "alice's") -> Any:
    """The last answer."""
    await shake(peer)
    client = ScramClient(SHA_256, username, password, "abc")
    first = await say(peer, client.first())
    last = await say(peer, client.final(bytes(first.auth_bytes)))
    if last.error_code is ErrorCode.none:
        client.verify(bytes(last.auth_bytes))
    return last


METADATA = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", 0)


async def is_closed(peer: Peer) -> bool:
    return await peer.receive_to_end() == b""


def test_a_login_opens_the_gate(run: Run) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            last = await log_in(peer)
            assert last.error_code is ErrorCode.none
            await peer.send(frame(METADATA))
            assert await peer.receive_frame() == b"ok"
            assert served.came == [(ALICE, True, METADATA)]

    run(main())


def test_who_is_no_super_user_may_not_act_as_a_node(run: Run) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            await log_in(peer, "bob", "bob's")
            await peer.send(frame(METADATA))
            await peer.receive_frame()
            assert served.came == [(Principal("User", "bob"), False, METADATA)]

    run(main())


def test_a_login_by_plain_and_one_without_headers(run: Run) -> None:
    async def main() -> None:
        async with locked() as served:
            async with peer_of(served.server) as peer:
                await shake(peer, "PLAIN")
                assert (await say(peer, plain_message("alice", "alice's"), 0)).auth_bytes == b""
                await peer.send(frame(METADATA))
                assert await peer.receive_frame() == b"ok"
            async with peer_of(served.server) as peer:
                await shake(peer, version=0)
                client = ScramClient(SHA_256, "alice", "alice's", "abc")
                await peer.send(frame(client.first()))
                await peer.send(frame(client.final(await peer.receive_frame())))
                client.verify(await peer.receive_frame())
                await peer.send(frame(METADATA))
                assert await peer.receive_frame() == b"ok"
            assert [came[0] for came in served.came] == [ALICE, ALICE]

    run(main())


@pytest.mark.parametrize(
    ("username", "password"), [("alice", "bob's"), ("nobody", "alice's"), ("alice", "")]
)
def test_wrong_passwords_and_unknown_users_get_the_same_answer(
    run: Run, username: str, password: str
) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            last = await log_in(peer, username, password)
            assert last.error_code is ErrorCode.sasl_authentication_failed
            assert last.error_message == (
                "Authentication failed during authentication due to invalid credentials with SASL "
                "mechanism SCRAM-SHA-256"
            )
            assert await is_closed(peer)
            assert served.server.counters.connections_refused == {"authentication failed": 1}
            assert served.came == []

    run(main())


def test_a_failed_login_without_headers_is_only_closed(run: Run) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            await shake(peer, "PLAIN", version=0)
            await peer.send(frame(plain_message("alice", "wrong")))
            assert await is_closed(peer)

    run(main())


def test_what_comes_behind_a_failed_login_is_not_looked_at(run: Run) -> None:
    async def main() -> None:
        async with locked(failure_delay_ms=50) as served, peer_of(served.server) as peer:
            await shake(peer, "PLAIN")
            request = SaslAuthenticateRequest(auth_bytes=plain_message("alice", "wrong"))
            await peer.send(write_request(36, 2, 1, None, request) + frame(METADATA) * 3)
            answer = read_response(36, 2, memoryview(await peer.receive_frame()))[1]
            assert answer.error_code is ErrorCode.sasl_authentication_failed
            assert await is_closed(peer)
            assert served.came == []

    run(main())


def test_only_api_versions_is_answered_before_a_login(run: Run) -> None:
    async def main() -> None:
        async with locked() as served:
            async with peer_of(served.server) as peer:
                request = ApiVersionsRequest(
                    client_software_name="test", client_software_version="1"
                )
                await peer.send(write_request(18, 3, 1, None, request))
                assert await peer.receive_frame() == b"ok"
            count = len(served.came)
            for key in (0, 1, 3, 52, 58, 19):
                async with peer_of(served.server) as peer:
                    await peer.send(frame(struct.pack(">hhih", key, 0, 1, -1)))
                    assert await is_closed(peer)
            assert len(served.came) == count

    run(main())


def test_a_mechanism_that_is_not_offered_is_refused(run: Run) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            answer = await shake(peer, "GSSAPI")
            assert answer.error_code is ErrorCode.unsupported_sasl_mechanism
            assert answer.mechanisms == MECHANISMS
            assert await is_closed(peer)

    run(main())


def test_requests_of_the_login_out_of_order(run: Run) -> None:
    async def main() -> None:
        async with locked() as served, peer_of(served.server) as peer:
            early = await say(peer, b"n,,n=alice,r=abc")
            assert early.error_code is ErrorCode.illegal_sasl_state
            await shake(peer)
            assert (await shake(peer)).error_code is ErrorCode.illegal_sasl_state

    run(main())


def test_a_large_request_is_refused_before_a_login_and_taken_after_it(run: Run) -> None:
    async def main() -> None:
        async with locked(unauthenticated_bytes_max=1_000) as served:
            async with peer_of(served.server) as peer:
                await peer.send(struct.pack(">i", 1_001))
                assert await is_closed(peer)
            async with peer_of(served.server) as peer:
                await log_in(peer)
                await peer.send(frame(METADATA + bytes(400_000)))
                assert await peer.receive_frame() == b"ok"

    run(main())


def test_a_connection_that_does_not_log_in_is_closed(run: Run) -> None:
    async def main() -> None:
        async with locked(timeout_ms=20) as served, peer_of(served.server) as peer:
            assert await is_closed(peer)
            refused = served.server.counters.connections_refused
            assert refused == {"authentication timed out": 1}

    run(main())


def test_a_node_that_does_not_know_its_users_yet_refuses_nobody_for_good(run: Run) -> None:
    async def main() -> None:
        async with locked(users=None) as served, peer_of(served.server) as peer:
            handshake = SaslHandshakeRequest(mechanism="PLAIN")
            await peer.send(write_request(17, 1, 1, None, handshake))
            assert await is_closed(peer)
            assert served.server.counters.connections_refused == {}

    run(main())


def test_a_login_that_expires_has_to_be_renewed(run: Run) -> None:
    async def main() -> None:
        config = replace(CONFIG, reauthenticate_ms=60_000)
        async with locked(config) as served:
            async with peer_of(served.server) as peer:
                last = await log_in(peer)
                assert last.session_lifetime.total_seconds() == 60
                served.clock.now_ms = 50_000
                assert (await log_in(peer)).error_code is ErrorCode.none
                served.clock.now_ms = 100_000
                await peer.send(frame(METADATA))
                assert await peer.receive_frame() == b"ok"
                served.clock.now_ms = 111_000
                await peer.send(frame(METADATA))
                assert await is_closed(peer)
            async with peer_of(served.server) as peer:
                await log_in(peer)
                other = await log_in(peer, "bob", "bob's")
                assert other.error_code is ErrorCode.sasl_authentication_failed
                assert await is_closed(peer)

    run(main())


def test_a_login_that_is_renewed_drops_what_the_user_was_found_to_be_allowed(run: Run) -> None:
    async def main() -> None:
        async with (
            locked(replace(CONFIG, reauthenticate_ms=60_000)) as served,
            peer_of(served.server) as peer,
        ):
            await log_in(peer)
            (session,) = served.server.sessions
            user = session.principal
            session.access = Access(user)
            await log_in(peer)
            (session,) = served.server.sessions
            assert session.access is None
            assert session.principal == user

    run(main())


def test_who_goes_away_while_its_password_is_checked_leaves_nothing(run: Run) -> None:
    async def main() -> None:
        async with locked(failure_delay_ms=50) as served:
            async with peer_of(served.server) as peer:
                await shake(peer, "PLAIN")
                wrong = SaslAuthenticateRequest(auth_bytes=plain_message("alice", "wrong"))
                await peer.send(write_request(36, 2, 1, None, wrong))
                peer.reset()
            while served.server.sessions:  # noqa: ASYNC110
                await asyncio.sleep(0.001)

    run(main())


def test_logins_do_not_wait_for_the_disk(run: Run) -> None:
    async def main() -> None:
        synced = threading.Event()
        with ThreadPoolExecutor(1) as disk, ThreadPoolExecutor(1) as logins:
            disk.submit(synced.wait)
            try:
                async with (
                    locked(executor=disk, login_executor=logins) as served,
                    peer_of(served.server) as peer,
                ):
                    await shake(peer, "PLAIN")
                    answer = await say(peer, plain_message("alice", "alice's"))
                    assert answer.error_code is ErrorCode.none
            finally:
                synced.set()

    run(main())
