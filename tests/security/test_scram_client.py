"""The exchange of RFC 7677, and servers that break it."""

import pytest

from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import ScramMechanism
from ottla.security.scram_client import ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()


def exchange(username: str = "user") -> ScramClient:
    return ScramClient(ScramMechanism.SCRAM_SHA_256, username, "pencil", NONCE)


def test_the_exchange_of_the_standard() -> None:
    scram = exchange()
    assert scram.first() == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert scram.final(SERVER_FIRST) == f"c=biws,r={SERVER_NONCE},p={proof}".encode()
    scram.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    scram = exchange()
    scram.final(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="does not prove"):
        scram.verify(b"v=AAAA")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"r=other,s=AAAA,i=4096", "does not continue"),
        (f"r={NONCE},s=AAAA,i=4096".encode(), "does not continue"),
        (f"r={NONCE}x,s=AAAA,i=0".encode(), "'0' iterations"),
        (f"r={NONCE}x,s=AAAA,i=99999999999".encode(), "iterations"),
        (f"r={NONCE}x,s=?,i=4096".encode(), "not base64"),
        (b"\xff", "not text"),
        (b"", "does not continue"),
    ],
)
def test_a_message_that_is_not_of_the_exchange_is_refused(message: bytes, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        exchange().final(message)


def test_names_with_the_signs_of_the_protocol() -> None:
    assert exchange("a=b,c").first() == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()
