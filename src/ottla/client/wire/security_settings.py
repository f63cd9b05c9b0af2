"""Reads librdkafka's login settings for the wire client."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.client.wire.security import Sasl, Security, Tls


def security_of(settings: Mapping[str, Any]) -> Security:
    protocol = str(settings.get("security.protocol", "PLAINTEXT")).upper()
    tls = sasl = None
    if protocol.endswith("SSL"):
        tls = Tls(
            authorities=_content(settings.get("ssl.ca.location")),
            certificates=_content(settings.get("ssl.certificate.location")),
            key=_content(settings.get("ssl.key.location")),
        )
    if protocol.startswith("SASL"):
        sasl = Sasl(
            str(settings.get("sasl.mechanism", "PLAIN")),
            str(settings.get("sasl.username", "")),
            str(settings.get("sasl.password", "")),
        )
    return Security(tls, sasl)


def _content(path: str | None) -> str | None:
    return None if not path else Path(path).read_text(encoding="utf-8")
