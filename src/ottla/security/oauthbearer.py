"""SASL OAUTHBEARER (RFC 7628), the server's side: a bearer token instead of a password.

client: n,,^Aauth=Bearer TOKEN^A^A    ->  server: nothing, and the client is known
                                      or  server: {"status":"invalid_token"}
client: ^A                            ->  the exchange has failed

`verify` determines the token's user and lifetime.
"""

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import unescaped

OAUTHBEARER: Final = "OAUTHBEARER"
TOKEN_CHARACTERS_MAX: Final = 16_384
_INVALID: Final = b'{"status":"invalid_token"}'
_NAME: Final = r"(?:[^=,\x01\0]|=2C|=3D)+"
_FIRST: Final = re.compile(
    rf"n,(?:a=(?P<authorize>{_NAME}))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x20-\x7e\r\n\t]*\x01)+)\x01"
)
_BEARER: Final = re.compile(r"bearer +([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)


class VerifiedToken(NamedTuple):
    name: str
    expires_in_ms: int


VerifyToken = Callable[[str], VerifiedToken]  # AuthenticationFailed for an invalid token.


def bearer_token(message: bytes) -> tuple[str, str | None]:
    """The token, and the user that its holder wants to act as, if given."""
    try:
        match = _FIRST.fullmatch(message.decode())
    except UnicodeDecodeError:
        raise AuthenticationFailed("an OAUTHBEARER message is not UTF-8") from None
    if match is None:
        raise AuthenticationFailed("the first message is not OAUTHBEARER's")
    pairs = [pair.partition("=") for pair in match["pairs"].split("\x01") if pair]
    given = [value for key, _, value in pairs if key == "auth"]
    found = _BEARER.fullmatch(given[0]) if len(given) == 1 else None
    if found is None or len(found[1]) > TOKEN_CHARACTERS_MAX:
        raise AuthenticationFailed("there is no bearer token, or more than one, or a huge one")
    authorize = match["authorize"]
    return found[1], None if authorize is None else unescaped(authorize)


class OauthExchange:
    """Implements `exchange.Exchange`."""

    is_slow = True  # It checks signatures.
    by_token = False

    def __init__(self, verify: VerifyToken) -> None:
        self.username = ""
        self.is_done = False
        self.lifetime_ms: int | None = None
        self._verify = verify
        self._problem: AuthenticationFailed | None = None

    def respond(self, message: bytes) -> bytes:
        if self._problem is not None:
            raise self._problem
        token, authorize = bearer_token(message)
        try:
            verified = self._verify(token)
            if authorize is not None and authorize != verified.name:
                raise AuthenticationFailed(f"{verified.name!r} wants to act as somebody else")
        except AuthenticationFailed as error:
            self._problem = error.with_traceback(None)
            return _INVALID
        self.username = verified.name
        self.lifetime_ms = verified.expires_in_ms
        self.is_done = True
        return b""
