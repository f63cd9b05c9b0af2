"""The server's side: the exchange of RFC 7677, wrong proofs, messages that are not SCRAM."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
    is_password,
    new_credential,
    unknown_user,
)
from ottla.security.scram_client import ScramClient
from ottla.security.scram_server import ScramServer

SHA_256 = ScramMechanism.SCRAM_SHA_256
CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
NONCE = CLIENT_NONCE + SERVER_NONCE
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PENCIL = new_credential(SHA_256, "pencil", SALT)
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SECRET = b"known to all nodes"


def known(username: str) -> ScramCredential:
    return PENCIL if username == "user" else unknown_user(SHA_256, username, SECRET, ITERATIONS_MIN)


def server() -> ScramServer:
    return ScramServer(SHA_256, SERVER_NONCE, known)


def begun() -> ScramServer:
    exchange = server()
    exchange.first(f"n,,n=user,r={CLIENT_NONCE}".encode())
    return exchange


def test_the_exchange_of_the_standard() -> None:
    exchange = server()
    first = exchange.first(f"n,,n=user,r={CLIENT_NONCE}".encode())
    assert first == f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = exchange.final(f"c=biws,r={NONCE},p={PROOF}".encode())
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert exchange.username == "user"


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("username", ["user", "a=b,c", "=2C", "Jiří 🎷"])
def test_client_and_server_agree(mechanism: ScramMechanism, username: str) -> None:
    credential = new_credential(mechanism, "päss,=wörd", b"salt")
    client = ScramClient(mechanism, username, "päss,=wörd", "abc")
    exchange = ScramServer(mechanism, "def", lambda _: credential)
    client.verify(exchange.final(client.final(exchange.first(client.first()))))
    assert exchange.username == username


def test_a_wrong_password_is_refused() -> None:
    client = ScramClient(SHA_256, "user", "pencils", CLIENT_NONCE)
    exchange = server()
    proof = client.final(exchange.first(client.first()))
    with pytest.raises(AuthenticationFailed, match="unknown user 'user', or wrong password"):
        exchange.final(proof)


def test_an_unknown_user_is_asked_like_a_known_one_and_always_the_same() -> None:
    answers = [server().first(f"n,,n=nobody,r={CLIENT_NONCE}".encode()) for _ in range(2)]
    assert answers[0] == answers[1]
    fields = dict(part.split("=", 1) for part in answers[0].decode().split(","))
    assert fields["r"] == NONCE
    assert fields["i"] == str(ITERATIONS_MIN)
    assert len(base64.b64decode(fields["s"])) == 32
    other = server().first(f"n,,n=nobody2,r={CLIENT_NONCE}".encode())
    assert other != answers[0]


def test_no_password_fits_an_unknown_user() -> None:
    client = ScramClient(SHA_256, "nobody", "", CLIENT_NONCE)
    exchange = server()
    with pytest.raises(AuthenticationFailed, match="unknown user 'nobody', or wrong password"):
        exchange.final(client.final(exchange.first(client.first())))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        b"n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",  # Channel binding, which is not offered.
        b"n,,m=ext,n=user,r=abc",  # A mandatory extension.
        b"n,,n=user,r=abc,tokenauth",
        b"n,,n=us=er,r=abc",
        b"n,,n=,r=abc",
        b"n,,n=user,r=",
        b"n,,n=user,r=a b",
        b"n,a=admin,n=user,r=abc",
        b"n,,n=us\0er,r=abc",
    ],
)
def test_a_first_message_that_is_not_scrams_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        server().first(message)


def test_optional_extensions_that_are_not_known_are_ignored() -> None:
    assert server().first(b"n,,n=user,r=abc,color=red").startswith(b"r=abc")


def test_a_user_may_ask_to_act_as_itself() -> None:
    assert server().first(b"n,a=user,n=user,r=abc").startswith(b"r=abc")
    assert server().first(b"y,,n=user,r=abc").startswith(b"r=abc")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xff",
        f"c=biws,r={NONCE}".encode(),
        f"c=biws,r={NONCE}x,p={PROOF}".encode(),
        f"c=biws,r={CLIENT_NONCE},p={PROOF}".encode(),
        f"c=eSws,r={NONCE},p={PROOF}".encode(),  # The header of another first message.
        f"c=biws,r={NONCE},p=AAAA".encode(),
        f"c=biws,r={NONCE},p=A".encode(),
        f"c=biws,r={NONCE},x=1,p={PROOF}".encode(),
    ],
)
def test_a_last_message_that_does_not_prove_anything_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        begun().final(message)


@given(st.binary(max_size=200))
def test_no_bytes_get_in_or_break_the_exchange(data: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        begun().final(data)
    try:
        server().first(data)
    except AuthenticationFailed:
        pass


@given(st.integers(0, 31), st.integers(1, 255))
def test_a_proof_with_one_byte_changed_is_refused(index: int, change: int) -> None:
    proof = bytearray(base64.b64decode(PROOF))
    proof[index] ^= change
    text = base64.b64encode(proof).decode()
    with pytest.raises(AuthenticationFailed):
        begun().final(f"c=biws,r={NONCE},p={text}".encode())


def test_a_password_is_checked_against_a_credential() -> None:
    assert is_password(SHA_256, PENCIL, "pencil")
    assert not is_password(SHA_256, PENCIL, "pencil ")
    assert not is_password(SHA_256, known("nobody"), "pencil")


def test_a_credential_does_not_show_its_keys() -> None:
    assert "key" not in repr(PENCIL)
