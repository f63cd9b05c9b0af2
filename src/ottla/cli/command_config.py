"""`--command-config`: a file with settings of clients, as Kafka's tools take it.

Java's spelling of logins and stores is turned into librdkafka's; everything else stays as it is.
"""

import re
import stat
from pathlib import Path
from typing import Any, Final

from ottla.cli.errors import UsageError

_CREDENTIAL: Final = r'\b{}\s*=\s*"((?:[^"\\]|\\.)*)"'
_SECRETS: Final = ("sasl.password", "sasl.jaas.config", "ssl.key.password", "ssl.keystore.key")
_JAVA_NAMES: Final = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.truststore.certificates": ("ssl.ca.pem",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.keystore.certificate.chain": ("ssl.certificate.pem",),
    "ssl.keystore.key": ("ssl.key.pem",),
}
_STORE_TYPES: Final = ("ssl.truststore.type", "ssl.keystore.type")


def read_command_config(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise UsageError(f"--command-config {path}: {str(reason).lower()}") from None
    given = _parse(path, text)
    if mode & stat.S_IROTH and any(name in given for name in _SECRETS):
        raise UsageError(
            f"--command-config {path} has a secret and others can read it; run `chmod o-rwx {path}`"
        )
    return _translated(path, given)


def _parse(path: Path, text: str) -> dict[str, str]:
    values = {}
    for number, line in enumerate(text.replace("\\\n", "").splitlines(), 1):
        line = line.strip()
        if not line or line.startswith(("#", "!")):
            continue
        name, separator, value = line.partition("=")
        if not separator:
            raise UsageError(f"--command-config {path}: line {number} is not KEY=VALUE")
        values[name.strip()] = value.strip()
    return values


def _translated(path: Path, given: dict[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in _STORE_TYPES:
            if value.upper() != "PEM":
                raise UsageError(f"--command-config {path}: {name} is {value}; only PEM is read")
        elif name == "sasl.jaas.config":
            settings["sasl.username"] = _credential(path, value, "username")
            settings["sasl.password"] = _credential(path, value, "password")
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value or "none"
        else:
            for known in _JAVA_NAMES.get(name, (name,)):
                settings[known] = _located(path, known, value)
    return settings


def _located(path: Path, name: str, value: str) -> str:
    """Files that go with the configuration are found beside it."""
    return str(path.absolute().parent / value) if name.endswith(".location") else value


def _credential(path: Path, jaas: str, name: str) -> str:
    found = re.search(_CREDENTIAL.format(name), jaas)
    if found is None:
        raise UsageError(f'--command-config {path}: sasl.jaas.config has no {name}="..."')
    return re.sub(r"\\(.)", r"\1", found[1])
