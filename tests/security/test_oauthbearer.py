import pytest

from ottla.security.errors import AuthenticationFailed
from ottla.security.oauthbearer import (
    TOKEN_CHARACTERS_MAX,
    OauthExchange,
    VerifiedToken,
    bearer_token,
)


def verify(token: str) -> VerifiedToken:
    if token != "good":
        raise AuthenticationFailed("not good")
    return VerifiedToken("ann", 5000)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (b"n,,\x01auth=Bearer abc.def-_~+/==\x01\x01", ("abc.def-_~+/==", None)),
        (b"n,a=an=2Cn,\x01auth=bearer x\x01\x01", ("x", "an,n")),
        (b"n,,\x01host=here\x01auth=Bearer x\x01port=1\x01\x01", ("x", None)),
    ],
)
def test_a_message_has_a_token(message: bytes, expected: tuple[str, str | None]) -> None:
    assert bearer_token(message) == expected


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"\xff\xfe",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer x y\x01\x01",
        b"p=tls-unique,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * (TOKEN_CHARACTERS_MAX + 1) + b"\x01\x01",
    ],
)
def test_other_messages_are_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        bearer_token(message)


def test_a_good_token_says_who_it_is_and_for_how_long() -> None:
    exchange = OauthExchange(verify)
    assert exchange.respond(b"n,,\x01auth=Bearer good\x01\x01") == b""
    assert (exchange.is_done, exchange.username, exchange.lifetime_ms) == (True, "ann", 5000)


@pytest.mark.parametrize(
    "message", [b"n,,\x01auth=Bearer bad\x01\x01", b"n,a=bob,\x01auth=Bearer good\x01\x01"]
)
def test_a_bad_token_is_told_before_the_exchange_fails(message: bytes) -> None:
    exchange = OauthExchange(verify)
    assert exchange.respond(message) == b'{"status":"invalid_token"}'
    assert not exchange.is_done
    for again in (b"\x01", b"n,,\x01auth=Bearer good\x01\x01"):
        with pytest.raises(AuthenticationFailed):
            exchange.respond(again)
