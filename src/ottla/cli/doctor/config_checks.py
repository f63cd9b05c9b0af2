"""A configuration file, before a node is started with it."""

import datetime as dt
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ottla.cli.doctor.finding import Finding, critical, note, warning
from ottla.network.config import ADVERTISED_LISTENERS, LISTENERS
from ottla.network.endpoints import parse_endpoint
from ottla.node.config import load_config
from ottla.node.config_file import ConfigError
from ottla.node.exposure import validate_locked
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.config import ConfigValues

DAYS_WARNING: Final = 30
DAYS_CRITICAL: Final = 7
_KEYSTORE: Final = "ssl.keystore.location"
_WILDCARDS: Final = ("", "0.0.0.0", "::")


def check_config(path: Path, now: dt.datetime) -> tuple[list[Finding], ConfigValues | None]:
    """The values as well, if they can be read."""
    try:
        given = load_config(ServeSettings(config_file=path), {})
    except ConfigError as error:
        repair = f"correct {path}; docs/config.md has every key"
        return [critical("config", str(error), repair)], None
    values = ConfigValues(given)
    findings: list[Finding] = []
    try:
        validate_locked(given)
    except ConfigError as error:
        findings.append(critical("listeners", str(error), "ottla secure init"))
    findings += _check_addresses(values)
    keystore = str(given.get(_KEYSTORE) or "")
    if keystore:
        findings += check_certificate(Path(keystore), now)
    return findings, values


def _check_addresses(values: ConfigValues) -> Iterator[Finding]:
    listeners: tuple[str, ...] = values[LISTENERS]
    advertised: tuple[str, ...] = values[ADVERTISED_LISTENERS] or ()
    for text in advertised or listeners:
        endpoint = parse_endpoint(text)
        host = endpoint.host or ""
        if host in _WILDCARDS:
            if advertised:
                yield critical(
                    "listeners",
                    f"{text} tells clients to connect to no address in particular",
                    "name a host in advertised.listeners",
                )
            else:
                yield note(
                    "listeners",
                    f"{text} listens everywhere, and clients are told this machine's name,"
                    f" {socket.gethostname()}",
                    "set advertised.listeners if clients know it by another name",
                )
            continue
        try:
            socket.getaddrinfo(host, endpoint.port, type=socket.SOCK_STREAM)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            yield critical(
                "listeners",
                f"{host} of {text} is not found from here ({reason})",
                "correct the name in listeners or advertised.listeners, or the name service",
            )


def check_certificate(path: Path, now: dt.datetime) -> Iterator[Finding]:
    try:
        from cryptography import x509
    except ImportError:
        yield note(
            "certificates",
            f"{path} was not looked at: the library cryptography is missing",
            "pip install 'ottla[secure]'",
        )
        return
    try:
        chain = x509.load_pem_x509_certificates(path.read_bytes())
    except (OSError, ValueError) as error:
        yield critical("certificates", f"{path} cannot be used: {error}", "ottla secure init")
        return
    for certificate in chain:
        name = certificate.subject.rfc4514_string() or str(path)
        yield from check_expiry(f"{name} in {path}", certificate.not_valid_after_utc, now)


def check_expiry(name: str, end: dt.datetime, now: dt.datetime) -> Iterator[Finding]:
    days = (end - now).days
    if days >= DAYS_WARNING:
        return
    made = critical if days < DAYS_CRITICAL else warning
    when = "has expired" if end <= now else f"expires in {days} days"
    yield made(
        "certificates",
        f"{name} {when}, on {end:%Y-%m-%d}",
        "put a new one in its file; nodes take it up without a restart",
    )


def peer_certificate_end(connection: ssl.SSLSocket) -> dt.datetime | None:
    """Of a peer whose certificate was verified."""
    end = (connection.getpeercert() or {}).get("notAfter")
    if not isinstance(end, str):
        return None
    return dt.datetime.fromtimestamp(ssl.cert_time_to_seconds(end), dt.UTC)
