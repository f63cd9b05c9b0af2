"""The arithmetic of SCRAM (RFC 5802, RFC 7677), and what is stored of a password.

A credential lets a server check proofs. It neither allows a login nor reveals the password, except
by trying passwords, each at the cost of `iterations` hashes.
"""

import base64
import enum
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import Final

ITERATIONS_MIN: Final = 4_096
ITERATIONS_MAX: Final = 16_384  # Kafka's bound (KIP-554).
SALT_BYTES: Final = 32


class ScramMechanism(enum.IntEnum):
    """The values of KIP-554."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return "sha256" if self is ScramMechanism.SCRAM_SHA_256 else "sha512"


SCRAM_MECHANISMS: Final = {mechanism.sasl_name: mechanism for mechanism in ScramMechanism}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    salt: bytes
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def salted_password(
    mechanism: ScramMechanism, password: bytes, salt: bytes, iterations: int
) -> bytes:
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password, salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a salted password."""
    return ScramCredential(
        salt,
        digest(mechanism, client_key(mechanism, salted)),
        server_key(mechanism, salted),
        iterations,
    )


def new_credential(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    salted = salted_password(mechanism, password.encode(), salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    """Takes as long as `iterations` hashes, whatever the password."""
    salted = salted_password(mechanism, password.encode(), credential.salt, credential.iterations)
    stored = digest(mechanism, client_key(mechanism, salted))
    return hmac.compare_digest(stored, credential.stored_key)


def unknown_user(
    mechanism: ScramMechanism, username: str, secret: bytes, iterations: int
) -> ScramCredential:
    """The credential for an unknown user: always the same, and no password matches it."""

    def part(label: bytes) -> bytes:
        return sign(mechanism, secret, label + b"\0" + username.encode())

    return ScramCredential(part(b"salt")[:SALT_BYTES], part(b"stored"), part(b"server"), iterations)


def client_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return sign(mechanism, salted, b"Client Key")


def server_key(mechanism: ScramMechanism, salted: bytes) -> bytes:
    return sign(mechanism, salted, b"Server Key")


def sign(mechanism: ScramMechanism, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, mechanism.hash_name)


def digest(mechanism: ScramMechanism, data: bytes) -> bytes:
    return hashlib.new(mechanism.hash_name, data).digest()


def xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decode(text: str) -> bytes:
    """ValueError if it is not base64."""
    return base64.b64decode(text, validate=True)


def unescaped(name: str) -> str:
    """The user name in a message."""
    return name.replace("=2C", ",").replace("=3D", "=")
