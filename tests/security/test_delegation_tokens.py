"""Logins with delegation tokens, by SCRAM."""

import pytest

from ottla.controller.image import MetadataImage
from ottla.node.users import ImageCredentials
from ottla.security.delegation_tokens import DelegationToken, TokenSecret
from ottla.security.errors import AuthenticationFailed
from ottla.security.exchange import ScramExchange
from ottla.security.principal import Principal
from ottla.security.scram import ScramMechanism, encode
from ottla.security.scram_client import ScramClient

ALICE = Principal("User", "alice")
SECRET = TokenSecret("geheim")
TOKEN = DelegationToken("token-1", ALICE, ALICE, (), issued_ms=0, max_ms=1_000, expires_ms=500)
SHA_256, SHA_512 = ScramMechanism


def credentials(now_ms: int = 100, *tokens: DelegationToken) -> ImageCredentials:
    image = MetadataImage()
    image.delegation_tokens.update({token.token_id: token for token in tokens or (TOKEN,)})
    return ImageCredentials(image, b"fallback", TokenSecret("geheim"), lambda: now_ms)


def log_in(
    known: ImageCredentials,
    password: str = encode(SECRET.hmac("token-1")),
    name: str = "token-1",
    mechanism: ScramMechanism = SHA_512,
    *,
    by_token: bool = True,
) -> ScramExchange:
    client = ScramClient(mechanism, name, password, "abc", by_token=by_token)
    exchange = ScramExchange(mechanism, "def", known)
    client.verify(exchange.respond(client.final(exchange.respond(client.first()))))
    return exchange


@pytest.mark.parametrize("mechanism", [SHA_256, SHA_512])
def test_who_has_the_hmac_is_the_owner_for_as_long_as_the_token_lives(
    mechanism: ScramMechanism,
) -> None:
    exchange = log_in(credentials(), mechanism=mechanism)
    assert exchange.is_done
    assert (exchange.username, exchange.by_token, exchange.lifetime_ms) == ("alice", True, 400)


@pytest.mark.parametrize(
    ("now_ms", "password", "name", "by_token"),
    [
        (100, "wrong", "token-1", True),
        (100, encode(SECRET.hmac("token-1")), "token-2", True),
        (501, encode(SECRET.hmac("token-1")), "token-1", True),  # It has expired.
        (100, encode(SECRET.hmac("token-1")), "token-1", False),  # A user with that name.
    ],
)
def test_others_are_refused(now_ms: int, password: str, name: str, by_token: bool) -> None:
    with pytest.raises(AuthenticationFailed):
        log_in(credentials(now_ms), password, name, by_token=by_token)


def test_an_unknown_token_looks_like_a_known_one() -> None:
    answers = []
    for name in ("token-1", "token-2"):
        exchange = ScramExchange(SHA_256, "def", credentials())
        first = ScramClient(SHA_256, name, "x", "abc", by_token=True).first()
        answers.append([part[:2] for part in exchange.respond(first).split(b",")])
    assert answers[0] == answers[1]


def test_nothing_is_kept_of_tokens_that_are_gone() -> None:
    known = credentials()
    log_in(known)
    known.image.delegation_tokens.clear()
    other = DelegationToken("token-2", ALICE, ALICE, (), 0, 1_000, 500)
    for number in range(10):
        known.image.delegation_tokens = {f"t{number}": other}
        known.token(SHA_256, f"t{number}")
    assert known.secret is not None
    assert known.secret.remembered <= 3
