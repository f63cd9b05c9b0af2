"""The client side of SCRAM, without channel binding.

client: first()  ->  server: first message  ->  client: final()  ->  server: signature  ->  verify()
"""

import hmac
from functools import lru_cache
from typing import Final

from ottla.security.errors import AuthenticationFailed
from ottla.security.scram import (
    ScramMechanism,
    client_key,
    decode,
    digest,
    encode,
    salted_password,
    server_key,
    sign,
    xor,
)

_ITERATIONS_MAX: Final = 1_000_000  # A server that asks for more wants to keep the client busy.
_HEADER: Final = "n,,"


class ScramClient:
    """One exchange. `nonce` is fresh, unpredictable and contains no comma.

    With `by_token` the username and the password are the id and the HMAC of a delegation token.
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: str,
        nonce: str,
        *,
        by_token: bool = False,
    ) -> None:
        self._mechanism = mechanism
        self._password = password.encode()
        self._nonce = nonce
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._first_bare = f"n={name},r={nonce}" + (",tokenauth=true" if by_token else "")
        self._server_signature = b""

    def first(self) -> bytes:
        return (_HEADER + self._first_bare).encode()

    def final(self, server_first: bytes) -> bytes:
        """AuthenticationFailed for a response to another exchange."""
        fields = _fields(server_first)
        nonce, salt, iterations = fields.get("r", ""), fields.get("s", ""), fields.get("i", "")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise AuthenticationFailed("SCRAM: the server's nonce does not continue the client's")
        is_number = iterations.isascii() and iterations.isdecimal() and len(iterations) < 10
        if not is_number or not 0 < int(iterations) <= _ITERATIONS_MAX:
            raise AuthenticationFailed(f"SCRAM: the server wants {iterations!r} iterations")
        without_proof = f"c={encode(_HEADER.encode())},r={nonce}"
        auth_message = f"{self._first_bare},{server_first.decode()},{without_proof}".encode()
        mechanism = self._mechanism
        salted = _salted(mechanism, self._password, _decoded(salt), int(iterations))
        key = client_key(mechanism, salted)
        proof = xor(key, sign(mechanism, digest(mechanism, key), auth_message))
        self._server_signature = sign(mechanism, server_key(mechanism, salted), auth_message)
        return f"{without_proof},p={encode(proof)}".encode()

    def verify(self, server_final: bytes) -> None:
        """AuthenticationFailed if the server does not know the password either."""
        signature = _decoded(_fields(server_final).get("v", ""))
        if not hmac.compare_digest(signature, self._server_signature):
            raise AuthenticationFailed(
                "SCRAM: the server does not prove that it knows the password"
            )


# Reconnecting with the same salt avoids milliseconds of hashing.
_salted = lru_cache(maxsize=32)(salted_password)


def _decoded(text: str) -> bytes:
    try:
        return decode(text)
    except ValueError:
        raise AuthenticationFailed("SCRAM: the server's message is not base64") from None


def _fields(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode().split(",")
    except UnicodeDecodeError:
        raise AuthenticationFailed("SCRAM: the server's message is not text") from None
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}
