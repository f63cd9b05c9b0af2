"""A file with client settings, like the one Kafka's tools take with `--command-config`.

OTTLA_COMMAND_CONFIG names one for every command and for Spark. Java's settings for logins and
stores are translated into librdkafka's; all others are kept.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ottla.client.profiles import profile_for

COMMAND_CONFIG_VARIABLE: Final = "OTTLA_COMMAND_CONFIG"
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
_TOKEN: Final = re.compile(r'\btokenauth\s*=\s*"?true', re.IGNORECASE)


class CommandConfigError(ValueError):
    """The file cannot be used; the message names the file."""


def login_for(server: str) -> Mapping[str, Any]:
    """The default login: from OTTLA_COMMAND_CONFIG, or from the current profile.

    A profile counts if it is for these servers, or if no servers are given. Raises
    CommandConfigError if the file cannot be used.
    """
    path = os.environ.get(COMMAND_CONFIG_VARIABLE)
    return read_command_config(Path(path)) if path else profile_for(server)


def read_command_config(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise CommandConfigError(f"{path}: {str(reason).lower()}") from None
    given = _parse(path, text)
    if mode & stat.S_IROTH and any(name in given for name in _SECRETS):
        raise CommandConfigError(
            f"{path} has a secret and others can read it; run `chmod o-rwx {path}`"
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
            raise CommandConfigError(f"{path}: line {number} is not KEY=VALUE")
        values[name.strip()] = value.strip()
    return values


def _translated(path: Path, given: dict[str, str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name in _STORE_TYPES:
            if value.upper() != "PEM":
                raise CommandConfigError(f"{path}: {name} is {value}; only PEM is read")
        elif name == "sasl.jaas.config":
            if _TOKEN.search(value):
                raise CommandConfigError(f"{path}: librdkafka cannot log in with delegation tokens")
            settings["sasl.username"] = _credential(path, value, "username")
            settings["sasl.password"] = _credential(path, value, "password")
        elif name == "ssl.endpoint.identification.algorithm":
            settings[name] = value or "none"
        else:
            for known in _JAVA_NAMES.get(name, (name,)):
                settings[known] = _located(path, known, value)
    return settings


def _located(path: Path, name: str, value: str) -> str:
    """Resolves relative file names against the configuration's directory."""
    return str(path.absolute().parent / value) if name.endswith(".location") else value


def _credential(path: Path, jaas: str, name: str) -> str:
    found = re.search(_CREDENTIAL.format(name), jaas)
    if found is None:
        raise CommandConfigError(f'{path}: sasl.jaas.config has no {name}="..."')
    return re.sub(r"\\(.)", r"\1", found[1])
