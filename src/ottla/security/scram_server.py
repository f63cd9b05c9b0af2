"""The server side of SCRAM, without channel binding.

client: first message  ->  server: first()  ->  client: proof  ->  server: final()

Usernames are compared byte by byte, as in Kafka; nothing is normalized.
"""

import hmac
import re
from collections.abc import Callable
from typing import Final

from ottla.security.delegation_tokens import TokenLogin
from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import (
    ScramCredential,
    ScramMechanism,
    decode,
    digest,
    encode,
    sign,
    unescaped,
    xor,
)

# An extension of Kafka's (KIP-48). Others are ignored, as RFC 5802 requires.
_BY_TOKEN: Final = "tokenauth=true"
_NO_USER: Final = "\0"  # No user name begins with it, so no password matches.

_NAME: Final = r"(?:[^=,\0]|=2C|=3D)+"
_NONCE: Final = r"[\x21-\x2b\x2d-\x7e]+"
_VALUE: Final = r"[^,\0]+"
_FIRST: Final = re.compile(
    rf"(?P<header>[ny],(?:a=(?P<authorize>{_NAME}))?,)"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>{_NONCE})(?P<extensions>(?:,[A-Za-z]+={_VALUE})*))"
)
_FINAL: Final = re.compile(
    rf"(?P<unproved>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>{_NONCE})(?:,[A-Za-z]={_VALUE})*)"
    r",p=(?P<proof>[A-Za-z0-9+/=]+)"
)


class ScramServer:
    """One exchange.

    `nonce` is fresh, unpredictable and contains no comma. `credential_of` returns a credential for
    every username, even an unknown one (`scram.unknown_user`).
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        nonce: str,
        credential_of: Callable[[str], ScramCredential],
        token_of: Callable[[str], TokenLogin | None] = lambda _: None,
    ) -> None:
        """`token_of` returns the login data of a delegation token, if it exists."""
        self.username = ""  # The user, once `final` has returned.
        self.token: TokenLogin | None = None  # The delegation token used, if any.
        self._token_of = token_of
        self._mechanism = mechanism
        self._credential_of = credential_of
        self._server_nonce = nonce
        self._nonce = ""
        self._header = ""
        self._auth_message_start = ""
        self._credential: ScramCredential | None = None

    def first(self, client_first: bytes) -> bytes:
        match = _FIRST.fullmatch(_text(client_first))
        if match is None:
            raise AuthenticationFailed("the first message is not SCRAM's, or binds a channel")
        username = unescaped(match["name"])
        authorize = match["authorize"]
        if authorize is not None and unescaped(authorize) != username:
            raise AuthenticationFailed(f"{username!r} wants to act as somebody else")
        by_token = _BY_TOKEN in match["extensions"].split(",")
        self.token = self._token_of(username) if by_token else None
        if self.token is not None:
            credential = self.token.credential
            username = self.token.owner.name
        elif by_token:
            credential = self._credential_of(_NO_USER + username)
        else:
            credential = self._credential_of(username)
        self.username = username
        self._credential = credential
        self._header = match["header"]
        self._nonce = match["nonce"] + self._server_nonce
        answer = f"r={self._nonce},s={encode(credential.salt)},i={credential.iterations}"
        self._auth_message_start = f"{match['bare']},{answer}"
        return answer.encode()

    def final(self, client_final: bytes) -> bytes:
        """AuthenticationFailed unless the client knows the password."""
        credential, mechanism = self._credential, self._mechanism
        assert credential is not None, "final before first"
        match = _FINAL.fullmatch(_text(client_final))
        if match is None:
            raise AuthenticationFailed("the last message is not SCRAM's")
        if match["nonce"] != self._nonce or _decoded(match["channel"]) != self._header.encode():
            raise AuthenticationFailed("the last message is of another exchange")
        auth_message = f"{self._auth_message_start},{match['unproved']}".encode()
        proof = _decoded(match["proof"])
        signature = sign(mechanism, credential.stored_key, auth_message)
        if len(proof) != len(signature):
            raise AuthenticationFailed("the proof has the wrong size")
        key = xor(proof, signature)
        if not hmac.compare_digest(digest(mechanism, key), credential.stored_key):
            raise AuthenticationFailed(f"unknown user {self.username!r}, or wrong password")
        return f"v={encode(sign(mechanism, credential.server_key, auth_message))}".encode()


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise AuthenticationFailed("a message is not UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return decode(text)
    except ValueError:
        raise AuthenticationFailed("a message is not valid base64") from None
