"""Keys and certificates in PEM, from files or from the configuration, as `ssl` contexts.

Contexts are rebuilt when a file changes. A connection keeps the one it was created with.
"""

import contextlib
import enum
import os
import ssl
import stat
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from ottla.protocol.lazy_dataclass import dataclass

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


class TlsError(Exception):
    """A key or a certificate cannot be used; the message is one sentence for the operator."""


class ClientAuth(enum.Enum):
    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


_VERIFY_MODES: Final = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class TlsConfig:
    keystore_location: str = ""
    certificate_chain: str = ""
    key: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    truststore_location: str = ""
    truststore_certificates: str = ""
    client_auth: ClientAuth = ClientAuth.NONE
    protocols: tuple[str, ...] = tuple(_VERSIONS)
    checks_host_name: bool = True

    def problem(self) -> str | None:
        """What is wrong with the settings, regardless of the files."""
        has_inline = bool(self.certificate_chain or self.key)
        if self.keystore_location and has_inline:
            return "has both ssl.keystore.location and a key in the configuration"
        if not self.keystore_location and not (self.certificate_chain and self.key):
            return (
                "has no key and certificate; set ssl.keystore.location, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain"
            )
        if self.truststore_location and self.truststore_certificates:
            return "has both ssl.truststore.location and ssl.truststore.certificates"
        if not self.protocols:
            return "has no version of TLS in ssl.enabled.protocols"
        return None

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.keystore_location, self.truststore_location)))

    def expires_s(self) -> float | None:
        """When the first certificate of the chain expires; None if unknown."""
        try:
            from cryptography import x509

            stored = Path(self.keystore_location).read_bytes() if self.keystore_location else b""
            chain = x509.load_pem_x509_certificates(stored or self.certificate_chain.encode())
        except (ImportError, OSError, ValueError):
            return None
        return min(certificate.not_valid_after_utc.timestamp() for certificate in chain)

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = _VERIFY_MODES[self.client_auth]
        self._fill(context)
        return context

    def client_context(self) -> ssl.SSLContext:
        """For connections to other nodes."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = self.checks_host_name
        self._fill(context)
        return context

    def _fill(self, context: ssl.SSLContext) -> None:
        versions = sorted(_VERSIONS[name] for name in self.protocols)
        context.minimum_version, context.maximum_version = versions[0], versions[-1]
        context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
        self._load_key(context)
        self._load_authorities(context)

    def _load_key(self, context: ssl.SSLContext) -> None:
        if self.keystore_location:
            validate_private(self.keystore_location)
        inline = f"{self.key}\n{self.certificate_chain}\n"
        source = self.keystore_location or "ssl.keystore.key and ssl.keystore.certificate.chain"
        with _as_file(self.keystore_location, inline) as path:
            try:
                context.load_cert_chain(path, password=lambda: self.key_password)
            except (ssl.SSLError, ValueError) as error:
                raise TlsError(
                    f"cannot use the key and certificate of {source}: {_reason(error)}"
                ) from None
            except OSError as error:
                raise TlsError(f"cannot read {source}: {_reason(error)}") from None

    def _load_authorities(self, context: ssl.SSLContext) -> None:
        location, certificates = self.truststore_location, self.truststore_certificates
        if not location and not certificates:
            context.load_default_certs(
                ssl.Purpose.SERVER_AUTH if context.check_hostname else ssl.Purpose.CLIENT_AUTH
            )
            return
        try:
            context.load_verify_locations(cafile=location or None, cadata=certificates or None)
        except (ssl.SSLError, OSError, ValueError) as error:
            source = location or "ssl.truststore.certificates"
            raise TlsError(f"cannot use the certificates of {source}: {_reason(error)}") from None


def validate_private(path: str) -> None:
    """TlsError if others can read the file."""
    try:
        mode = Path(path).stat().st_mode
    except OSError as error:
        raise TlsError(f"cannot read {path}: {_reason(error)}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IROTH | stat.S_IWOTH):
        raise TlsError(f"{path} has a secret and others can read it; run `chmod o-rwx {path}`")


_NEVER: Final = object()  # Differs from what any file can be.


class TlsContexts:
    """For one listener. `load` reads files, so call it in a thread."""

    def __init__(self, config: TlsConfig) -> None:
        self._config = config
        self._seen: object = None
        self._expiry: tuple[object, float | None] | None = None  # As of what was seen.
        self.server: ssl.SSLContext
        self.client: ssl.SSLContext

    def configure(self, config: TlsConfig) -> None:
        """Applies from the next `load` on, which `is_outdated` requests."""
        if config != self._config:
            self._config = config
            self._seen = _NEVER

    def load(self) -> None:
        """Raises TlsError; then the contexts stay unchanged until the files change again."""
        self._seen = self._state()
        server, client = self._config.server_context(), self._config.client_context()
        self.server, self.client = server, client

    def expires_s(self) -> float | None:
        """As of the configuration; call in a thread."""
        if self._expiry is None or self._expiry[0] != self._seen:
            self._expiry = (self._seen, self._config.expires_s())
        return self._expiry[1]

    def is_outdated(self) -> bool:
        return self._state() != self._seen

    def _state(self) -> object:
        return tuple(_file_state(path) for path in self._config.files)


def _file_state(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextlib.contextmanager
def _as_file(path: str, text: str) -> Iterator[str]:
    """The file, or one in memory with the text: `ssl` accepts keys only from files."""
    if path:
        yield path
        return
    descriptor = os.memfd_create("ottla-key", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    if isinstance(error, OSError):
        return str(error.strerror or error).lower()
    return str(error)
