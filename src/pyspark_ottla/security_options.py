"""TLS and SASL options, named as in the Java client.

Certificates and keys are PEM (`kafka.ssl.truststore.type=PEM`), in files or inline: a truststore in
Java's own format cannot be read without Java. Files are read where the query is planned and sent to
the tasks as text, so they need not be on every machine.

Without any of these options, the login comes from the file that OTTLA_COMMAND_CONFIG names, or from
the profile in use (`ottla profile use`) if it is for the same servers; also read where the query is
planned.
"""

import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ottla.client.command_config import CommandConfigError, login_for
from ottla.client.profiles import ProfileError
from ottla.client.wire.librdkafka_settings import security_of
from ottla.client.wire.security import MECHANISMS, Sasl, Security, Tls
from pyspark_ottla.options import OptionError, OptionValues

PROTOCOL = "kafka.security.protocol"
_IDENTIFICATION = "kafka.ssl.endpoint.identification.algorithm"  # Empty: none.
NAMES = (
    PROTOCOL,
    "kafka.ssl.truststore.type",
    "kafka.ssl.truststore.location",
    "kafka.ssl.truststore.certificates",
    "kafka.ssl.keystore.type",
    "kafka.ssl.keystore.location",
    "kafka.ssl.keystore.certificate.chain",
    "kafka.ssl.keystore.key",
    "kafka.ssl.key.password",
    _IDENTIFICATION,
    "kafka.sasl.mechanism",
    "kafka.sasl.jaas.config",
    "kafka.sasl.username",
    "kafka.sasl.password",
)

_KEYSTORE = "kafka.ssl.keystore"
_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")
_CREDENTIAL = r'\b{}\s*=\s*"((?:[^"\\]|\\.)*)"'


def default_servers() -> str | None:
    """Servers from OTTLA_COMMAND_CONFIG or the profile in use, if there are any."""
    servers = _login("").get("bootstrap.servers")
    return str(servers) if servers else None


def parse_security(values: OptionValues, servers: str) -> Security:
    if not any(values.has(name) for name in NAMES):
        return security_for(servers)
    protocol = values.choice(PROTOCOL, _PROTOCOLS) or "plaintext"
    _validate_used(values, "kafka.ssl.", protocol, protocol.endswith("ssl"))
    _validate_used(values, "kafka.sasl.", protocol, protocol.startswith("sasl"))
    return Security(
        _tls(values) if protocol.endswith("ssl") else None,
        _sasl(values) if protocol.startswith("sasl") else None,
    )


def security_for(servers: str) -> Security:
    """Security settings when no option gives them."""
    try:
        security = security_of(_login(servers))
        if security.tls is not None:
            security.tls.context()
    except (OSError, ValueError) as error:
        raise OptionError(f"the login for {servers}: {error}") from None
    return security


def _login(servers: str) -> Mapping[str, Any]:
    try:
        return login_for(servers)
    except (CommandConfigError, ProfileError) as error:
        raise OptionError(str(error)) from None


def _validate_used(values: OptionValues, beginning: str, protocol: str, used: bool) -> None:
    given = [name for name in NAMES if name.startswith(beginning) and values.has(name)]
    if given and not used:
        raise OptionError(f"option {given[0]} has no meaning with {PROTOCOL}={protocol.upper()}")


def _tls(values: OptionValues) -> Tls:
    certificates = values.text("kafka.ssl.keystore.certificate.chain")
    key = values.text("kafka.ssl.keystore.key")
    if (certificates is None) != (key is None):
        raise OptionError(
            "kafka.ssl.keystore.certificate.chain and kafka.ssl.keystore.key go together"
        )
    tls = Tls(
        authorities=values.text("kafka.ssl.truststore.certificates")
        or _pem_file(values, "kafka.ssl.truststore"),
        certificates=certificates or _pem_file(values, _KEYSTORE),
        key=key,
        key_password=values.text("kafka.ssl.key.password"),
        checks_host_name=_checks_host_name(values),
    )
    try:
        tls.context()
    except ValueError as error:
        raise OptionError(f"options kafka.ssl.*: {error}") from None
    return tls


def _pem_file(values: OptionValues, store: str) -> str | None:
    """The text of the store's file, if there is one; it may hold certificates and a key."""
    path = values.text(f"{store}.location")
    if path is None:
        return None
    if (values.text(f"{store}.type") or "JKS").upper() != "PEM":
        raise OptionError(
            f"option {store}.location: only PEM can be read here, with {store}.type=PEM;"
            " keytool -importkeystore and openssl pkcs12 make it of a store of Java's"
        )
    try:
        if store == _KEYSTORE and Path(path).stat().st_mode & stat.S_IROTH:
            raise OptionError(
                f"option {store}.location: {path} has a secret and others can read it;"
                f" run `chmod o-rwx {path}`"
            )
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"option {store}.location: {error}") from None


def _checks_host_name(values: OptionValues) -> bool:
    if values.is_empty(_IDENTIFICATION):
        return False
    values.choice(_IDENTIFICATION, ("https",))
    return True


def _sasl(values: OptionValues) -> Sasl:
    mechanism = (values.text("kafka.sasl.mechanism") or "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise OptionError(f"kafka.sasl.mechanism is {mechanism}; there are {', '.join(MECHANISMS)}")
    jaas = values.text("kafka.sasl.jaas.config")
    if jaas is not None:
        return Sasl(mechanism, _credential(jaas, "username"), _credential(jaas, "password"))
    username, password = values.text("kafka.sasl.username"), values.text("kafka.sasl.password")
    if username is None or password is None:
        raise OptionError(
            "SASL needs kafka.sasl.username and kafka.sasl.password, or kafka.sasl.jaas.config"
        )
    return Sasl(mechanism, username, password)


def _credential(jaas: str, name: str) -> str:
    found = re.search(_CREDENTIAL.format(name), jaas)
    if found is None:
        raise OptionError(f'option kafka.sasl.jaas.config has no {name}="..."')
    return re.sub(r"\\(.)", r"\1", found[1])
