"""The server side of a login, for any mechanism: messages in, responses out."""

from collections.abc import Callable
from typing import Final, Protocol

from ottla.security.delegation_tokens import TokenLogin
from ottla.security.errors import AuthenticationFailed
from ottla.security.oauthbearer import OAUTHBEARER, OauthExchange, VerifyToken
from ottla.security.plain import parse_plain
from ottla.security.scram import (
    SCRAM_MECHANISMS,
    ScramCredential,
    ScramMechanism,
    is_password,
)
from ottla.security.scram_server import ScramServer

PLAIN: Final = "PLAIN"
_PLAIN_CREDENTIAL: Final = ScramMechanism.SCRAM_SHA_512


class Credentials(Protocol):
    def scram(self, mechanism: ScramMechanism, username: str) -> ScramCredential:
        """Also for unknown users: then a credential that no password matches."""

    def token(self, mechanism: ScramMechanism, token_id: str) -> TokenLogin | None:
        """Of a delegation token that has not expired; None if there is none."""


class Exchange(Protocol):
    username: str = ""  # The client, once `is_done`.
    is_done: bool = False
    is_slow: bool = False  # `respond` takes a while, and needs a thread.
    lifetime_ms: int | None = None  # The maximum login lifetime, once `is_done`; None for no limit.
    by_token: bool = False  # The login used a delegation token.

    def respond(self, message: bytes) -> bytes:
        """AuthenticationFailed if the exchange has failed."""


class ScramExchange(Exchange):
    def __init__(self, mechanism: ScramMechanism, nonce: str, credentials: Credentials) -> None:
        self._begun = False
        self._server = ScramServer(
            mechanism,
            nonce,
            lambda username: credentials.scram(mechanism, username),
            lambda token_id: credentials.token(mechanism, token_id),
        )

    def respond(self, message: bytes) -> bytes:
        if not self._begun:
            self._begun = True
            return self._server.first(message)
        answer = self._server.final(message)
        self.username = self._server.username
        token = self._server.token
        if token is not None:
            self.by_token, self.lifetime_ms = True, token.lifetime_ms
        self.is_done = True
        return answer


class PlainExchange(Exchange):
    """Checks a password against its SCRAM credential."""

    is_slow = True

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def respond(self, message: bytes) -> bytes:
        login = parse_plain(message)
        credential = self._credentials.scram(_PLAIN_CREDENTIAL, login.username)
        if not is_password(_PLAIN_CREDENTIAL, credential, login.password):
            raise AuthenticationFailed(f"unknown user {login.username!r}, or wrong password")
        self.username = login.username
        self.is_done = True
        return b""


def new_exchange(
    mechanism: str,
    new_nonce: Callable[[], str],
    credentials: Credentials,
    verify_token: VerifyToken | None = None,
) -> Exchange:
    """`verify_token` is required for OAUTHBEARER."""
    if mechanism == PLAIN:
        return PlainExchange(credentials)
    if mechanism == OAUTHBEARER:
        assert verify_token is not None
        return OauthExchange(verify_token)
    return ScramExchange(SCRAM_MECHANISMS[mechanism], new_nonce(), credentials)
