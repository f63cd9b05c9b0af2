"""The client's side of SCRAM (RFC 5802, RFC 7677), without channel binding.

client: first()  ->  server: first message  ->  client: final()  ->  server: signature  ->  verify()
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from typing import Final

from ottla.client.wire.errors import NotAuthenticated

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

_ITERATIONS_MAX = 1_000_000  # A server that asks for more wants to keep the client busy.
_HEADER = "n,,"


class Scram:
    """One exchange."""

    def __init__(
        self,
        mechanism: str,
        username: str,
        password: str,
        make_nonce: Callable[[], str] = lambda: secrets.token_urlsafe(24),
    ) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = make_nonce()
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={self._nonce}"
        self._server_signature = b""

    def first(self) -> bytes:
        return (_HEADER + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """NotAuthenticated for an answer that is not to this exchange."""
        fields = _fields(server_first)
        nonce, salt, iterations = fields.get("r", ""), fields.get("s", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise NotAuthenticated("SCRAM: the server's nonce does not continue the client's")
        if not iterations.isdecimal() or not 0 < int(iterations) <= _ITERATIONS_MAX:
            raise NotAuthenticated(f"SCRAM: the server wants {iterations!r} iterations")
        channel = base64.b64encode(_HEADER.encode()).decode()
        without_proof = f"c={channel},r={nonce}"
        said = f"{self._first_bare},{server_first.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, _decoded(salt), int(iterations))
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, client_key).digest(), said)
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        self._server_signature = self._hmac(self._hmac(salted, b"Server Key"), said)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, server_final: bytes) -> None:
        """NotAuthenticated if the server does not know the password either."""
        fields = _fields(server_final)
        signature = _decoded(fields.get("v", ""))
        if not hmac.compare_digest(signature, self._server_signature):
            raise NotAuthenticated("SCRAM: the server does not prove that it knows the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise NotAuthenticated("SCRAM: the server's message is not base64") from None


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise NotAuthenticated("SCRAM: the server's message is not text") from None
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}
