"""Translates librdkafka's security settings for our own connections."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.client.wire.security import Sasl, Security, Tls


def security_of(settings: Mapping[str, Any]) -> Security:
    """Raises OSError if a file named in the settings cannot be read."""

    def text(*names: str) -> str:
        return next((str(settings[name]) for name in names if settings.get(name)), "")

    def pem(inline: str, location: str) -> str | None:
        path = text(location)
        return text(inline) or (Path(path).read_text(encoding="utf-8") if path else None)

    protocol = text("security.protocol").lower() or "plaintext"
    tls = None
    if protocol.endswith("ssl"):
        tls = Tls(
            authorities=pem("ssl.ca.pem", "ssl.ca.location"),
            certificates=pem("ssl.certificate.pem", "ssl.certificate.location"),
            key=pem("ssl.key.pem", "ssl.key.location"),
            key_password=text("ssl.key.password") or None,
            checks_host_name=text("ssl.endpoint.identification.algorithm") != "none",
        )
    sasl = None
    if protocol.startswith("sasl"):
        mechanism = text("sasl.mechanism", "sasl.mechanisms").upper()
        sasl = Sasl(mechanism, text("sasl.username"), text("sasl.password"))
    return Security(tls, sasl)
