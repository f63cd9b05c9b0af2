"""Client-side encryption and authentication: TLS, and SASL PLAIN and SCRAM."""

import contextlib
import os
import secrets
import socket
import ssl
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from ottla.client.wire.errors import NotAuthenticated
from ottla.protocol.errors import ErrorCode
from ottla.security.errors import AuthenticationFailed
from ottla.security.plain import plain_message
from ottla.security.scram import SCRAM_MECHANISMS
from ottla.security.scram_client import ScramClient

PLAIN = "PLAIN"
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)


@dataclass(frozen=True)
class Tls:
    """Certificates and keys are PEM text."""

    authorities: str | None = None  # None: the system's trust store.
    certificates: str | None = None  # The client's certificate chain, if it has one.
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_host_name: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises ValueError if the certificates or keys cannot be parsed."""
        try:
            context = ssl.create_default_context(cadata=self.authorities)
            context.check_hostname = self.checks_host_name
            if self.certificates is not None:
                with _as_file(self.certificates + "\n" + (self.key or "")) as path:
                    context.load_cert_chain(path, password=lambda: self.key_password or "")
        except ssl.SSLError as error:
            raise ValueError(f"certificates or key are not PEM that can be used: {error}") from None
        return context


@dataclass(frozen=True)
class Sasl:
    mechanism: str  # One of MECHANISMS.
    username: str
    password: str = field(repr=False)

    def conversation(self) -> Generator[bytes, bytes, None]:
        """A generator that yields the client's messages and is sent the server's."""
        if self.mechanism == PLAIN:
            yield plain_message(self.username, self.password)
            return
        mechanism, nonce = SCRAM_MECHANISMS[self.mechanism], secrets.token_urlsafe(24)
        scram = ScramClient(mechanism, self.username, self.password, nonce)
        scram.verify((yield scram.final((yield scram.first()))))


@dataclass(frozen=True)
class Security:
    tls: Tls | None = None
    sasl: Sasl | None = None

    def wrap(self, plain: socket.socket, host: str) -> socket.socket:
        """Raises NotAuthenticated if the peer's certificate is not valid for it."""
        if self.tls is None:
            return plain
        try:
            return self.tls.context().wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise NotAuthenticated(f"broker {host}: {error.verify_message}") from None


PLAINTEXT = Security()


def authentication(sasl: Sasl, address: str) -> Generator[Any, Any, None]:
    """A generator that yields requests and is sent the responses, until the client is logged in."""
    offered = yield SaslHandshakeRequest(mechanism=sasl.mechanism)
    if offered.error_code is not ErrorCode.none:
        names = ", ".join(offered.mechanisms) or "no mechanism"
        raise NotAuthenticated(f"broker {address} offers {names} for SASL, not {sasl.mechanism}")
    conversation = sasl.conversation()
    data = next(conversation)
    while True:
        answer = yield SaslAuthenticateRequest(auth_bytes=data)
        if answer.error_code is not ErrorCode.none:
            reason = answer.error_message or answer.error_code.name.replace("_", " ")
            raise NotAuthenticated(f"broker {address}: {reason}")
        try:
            data = conversation.send(bytes(answer.auth_bytes))
        except StopIteration:
            return
        except AuthenticationFailed as error:
            raise NotAuthenticated(f"broker {address}: {error}") from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Python's ssl loads a client certificate only from files."""
    number, path = tempfile.mkstemp()  # Readable only by this user.
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        yield path
    finally:
        Path(path).unlink()
