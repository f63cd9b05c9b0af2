"""How a client is kept from listeners and says who it is: TLS, and SASL PLAIN and SCRAM."""

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
    """Certificates and keys are in PEM, as text."""

    authorities: str | None = None  # None: those that the system trusts.
    certificates: str | None = None  # Of the client, with its chain; None: it has none.
    key: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    checks_host_name: bool = True

    def context(self) -> ssl.SSLContext:
        """ValueError if the certificates and keys cannot be read."""
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
        """Yields what the client says and is sent what the server answers."""
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
        """NotAuthenticated if the peer is not whom the certificates say."""
        if self.tls is None:
            return plain
        try:
            return self.tls.context().wrap_socket(plain, server_hostname=host)
        except ssl.SSLCertVerificationError as error:
            raise NotAuthenticated(f"broker {host}: {error.verify_message}") from None


PLAINTEXT = Security()


def authentication(sasl: Sasl, address: str) -> Generator[Any, Any, None]:
    """Yields requests and is sent their responses, until the broker knows the client."""
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
    """For Python's ssl, which takes a client's certificate from files only."""
    number, path = tempfile.mkstemp()  # That nobody else can read.
    try:
        with os.fdopen(number, "w") as file:
            file.write(text)
        yield path
    finally:
        Path(path).unlink()
