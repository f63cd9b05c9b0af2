"""Keys and certificates: from files and inline, encrypted, wrong, readable by others, renewed."""

import asyncio
import datetime as dt
import shutil
import ssl
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from tests.network.locked import AUTHORITY, CLIENT, NODE, NOW, Connection, Locked, stored
from tests.network.peer import Run, frame, until

from ottla.cli.secure.authority import CLIENTS_UNIT, NODES_UNIT, issue, new_authority
from ottla.network.tls import ClientAuth, TlsConfig, TlsContexts, TlsError
from ottla.security.principal import Principal

INLINE = TlsConfig(
    certificate_chain=NODE.certificate.decode(),
    key=NODE.key.decode(),
    truststore_certificates=AUTHORITY.certificate.decode(),
)


def test_a_key_from_a_file_and_one_from_the_configuration(tmp_path: Path) -> None:
    for config in (stored(tmp_path), INLINE):
        assert config.problem() is None
        contexts = TlsContexts(config)
        contexts.load()
        assert contexts.server.minimum_version is ssl.TLSVersion.TLSv1_2
        assert contexts.client.check_hostname


def test_the_end_of_a_certificate_is_known_and_renewed_with_its_file(tmp_path: Path) -> None:
    short, long = (
        issue(AUTHORITY, "node-1", NODES_UNIT, ["localhost"], NOW - dt.timedelta(days=days))
        for days in (300, 10)
    )
    contexts = TlsContexts(stored(tmp_path, short))
    contexts.load()
    before = contexts.expires_s()
    stored(tmp_path, long)
    contexts.load()
    after = contexts.expires_s()
    assert before is not None
    assert after is not None
    assert after - before == dt.timedelta(days=290).total_seconds()
    assert TlsContexts(INLINE).expires_s() is not None
    assert TlsContexts(replace(INLINE, certificate_chain="nothing")).expires_s() is None


def test_an_encrypted_key_needs_its_password() -> None:
    key = serialization.load_pem_private_key(NODE.key, None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"sesame"),
    ).decode()
    replace(INLINE, key=encrypted, key_password="sesame").server_context()
    for wrong in ("", "other"):
        with pytest.raises(TlsError, match=r"cannot use the key and certificate") as refused:
            replace(INLINE, key=encrypted, key_password=wrong).server_context()
        assert "other" not in str(refused.value)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TlsError, match=r"others can read it; run `chmod o-rwx"):
        stored(tmp_path, mode=0o644).server_context()
    stored(tmp_path, mode=0o640).server_context()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": CLIENT.key.decode()}, "key values mismatch"),
        ({"key": "nothing"}, "cannot use the key"),
        ({"truststore_certificates": "nothing"}, "cannot use the certificates"),
        ({"key": "", "certificate_chain": "", "keystore_location": "/none"}, "cannot read /none"),
    ],
)
def test_what_cannot_be_used_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(TlsError, match=message):
        replace(INLINE, **change).server_context()  # type: ignore[arg-type]


def test_a_configuration_does_not_show_its_key() -> None:
    assert "PRIVATE" not in repr(replace(INLINE, key_password="sesame"))
    assert "sesame" not in repr(replace(INLINE, key_password="sesame"))


def test_frames_of_all_sizes_go_through_tls(
    run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Locked(stored(tmp_path)) as locked:
            connection = await locked.connect()
            for size in (2, 16_384, 300_000, 3_000_000):
                body = bytes(range(256)) * (size // 256) + bytes(size % 256)
                assert await locked.exchange(connection, body) == body
            assert str(locked.came[0].principal) == "User:ANONYMOUS"
            assert not locked.came[0].may_act_as_node
            assert locked.server.counters.handshakes_full == 1

    run(main())
    assert caplog.records == []


def test_a_certificate_names_the_user(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        tls = replace(stored(tmp_path), client_auth=ClientAuth.REQUIRED)
        rules = r"RULE:^CN=[^,]*,OU=ottla-nodes$/node/,DEFAULT"
        async with Locked(tls, mapping_rules=rules) as locked:
            for identity, user, is_node in (
                (CLIENT, "CN=alice,OU=ottla-clients", False),
                (NODE, "node", True),
            ):
                connection = await locked.connect(tmp_path, identity)
                await locked.exchange(connection, b"hello")
                session = locked.came[-1]
                assert session.principal == Principal("User", user)
                assert session.may_act_as_node is is_node

    run(main())


def test_a_client_without_a_certificate_of_the_authority_is_refused(
    run: Run, tmp_path: Path
) -> None:
    stranger = issue(new_authority("strangers", NOW), "alice", CLIENTS_UNIT, [], NOW)
    reasons: list[str] = []

    async def main() -> None:
        tls = replace(stored(tmp_path), client_auth=ClientAuth.REQUIRED)
        async with Locked(tls) as locked:
            for identity in (None, stranger):
                with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                    await locked.exchange(await locked.connect(tmp_path, identity), b"hello")
            assert locked.came == []
            await until(lambda: len(locked.audited) == 2)
            for event in locked.audited:
                reason = event.pop("reason")
                assert event == {
                    "event": "login_refused",
                    "host": "127.0.0.1",
                    "listener": "SSL",
                    "mechanism": "certificate",
                }
                reasons.append(reason)

    run(main())
    assert reasons == ["no certificate", "unable to get local issuer certificate"]


def test_a_certificate_that_no_rule_fits_is_refused(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        tls = replace(stored(tmp_path), client_auth=ClientAuth.REQUIRED)
        async with Locked(tls, mapping_rules="RULE:^CN=node$/x/") as locked:
            with pytest.raises((ConnectionError, ssl.SSLError, asyncio.IncompleteReadError)):
                await locked.exchange(await locked.connect(tmp_path, CLIENT), b"hello")
            assert locked.came == []
            assert locked.server.counters.connections_refused == {"authentication failed": 1}

    run(main())


def test_new_certificates_are_taken_up_and_open_connections_stay(run: Run, tmp_path: Path) -> None:
    def serial(connection: Connection) -> object:
        return connection[1].get_extra_info("peercert")["serialNumber"]

    async def main() -> None:
        async with Locked(stored(tmp_path)) as locked:
            old = await locked.connect()
            assert not locked.contexts.is_outdated()
            stored(tmp_path, issue(AUTHORITY, "node-1", NODES_UNIT, ["127.0.0.1"], NOW))
            assert locked.contexts.is_outdated()
            locked.contexts.load()
            new = await locked.connect()
            assert serial(new) != serial(old)
            assert await locked.exchange(old, b"still here") == b"still here"
            (tmp_path / "node.pem").write_text("half a fi")
            with pytest.raises(TlsError):
                locked.contexts.load()
            assert not locked.contexts.is_outdated()
            assert serial(await locked.connect()) == serial(new)

    run(main())


def test_garbage_and_silence_end_no_more_than_their_own_connection(
    run: Run, tmp_path: Path
) -> None:
    async def main() -> None:
        async with Locked(stored(tmp_path)) as locked:
            port = locked.server.endpoints[0].port
            silent = await asyncio.open_connection("127.0.0.1", port)
            refused = locked.server.counters.connections_refused
            for garbage in (b"GET / HTTP/1.1\r\n\r\n", frame(b"\0\3\0\1"), bytes(1_000)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(garbage)
                try:
                    await reader.read()  # At most an alert, then the end.
                except ConnectionError:
                    pass
                writer.close()
            connection = await locked.connect()
            assert await locked.exchange(connection, b"hello") == b"hello"
            await until(lambda: refused["handshake failed"] == 3)
            assert not [event for event in locked.audited if event["event"] == "login_refused"]
            silent[1].close()

    run(main())


def test_handshakes_that_stay_half_open_are_ended_counted_and_forgotten(
    run: Run, tmp_path: Path
) -> None:
    beginning = bytes.fromhex("16030100c8010000c40303") + bytes(20)  # Of a ClientHello.

    async def main() -> None:
        async with Locked(stored(tmp_path), timeout_ms=50) as locked:
            port = locked.server.endpoints[0].port
            half_open = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
            for _, writer in half_open:
                writer.write(beginning)
            for reader, writer in half_open:
                try:
                    assert await reader.read() == b""
                except ConnectionError:
                    pass
                writer.close()
            counters = locked.server.counters
            while counters.connections_refused.get("handshake failed", 0) < 20:  # noqa: ASYNC110
                await asyncio.sleep(0)
            assert counters.connections_open == 0
            assert locked.server.sessions == ()
            assert locked.server.queued_bytes == 0

    run(main())


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the openssl command")
def test_renegotiation_is_refused(run: Run, tmp_path: Path) -> None:
    async def main() -> None:
        async with Locked(stored(tmp_path)) as locked:
            port = locked.server.endpoints[0].port
            client = await asyncio.create_subprocess_exec(
                *("openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{port}"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            assert client.stdin is not None
            assert client.stdout is not None
            seen = b""
            while b"Extended master secret" not in seen:
                data = await client.stdout.read(65_536)
                assert data, seen
                seen += data
            client.stdin.write(b"R\n")
            await client.stdin.drain()
            output, _ = await client.communicate()
            assert b"RENEGOTIATING" in output
            assert b"no renegotiation" in output
            connection = await locked.connect()
            assert await locked.exchange(connection, b"hello") == b"hello"

    run(main())
