"""Keeps a node from listening beyond this machine without security, unless told to."""

from collections.abc import Mapping

from ottla.network.config import LISTENERS
from ottla.network.endpoints import parse_listeners
from ottla.network.security_config import SecurityConfig, SecurityProtocol
from ottla.node.beginning import is_loopback
from ottla.node.config_file import ConfigError
from ottla.protocol.config import ConfigValues


def validate_locked(given: Mapping[str, object]) -> None:
    """ConfigError if a listener that others can reach has no TLS, or allows anonymous clients."""
    values = ConfigValues(given)
    texts: tuple[str, ...] = values[LISTENERS]
    endpoints = parse_listeners(texts)
    listeners = SecurityConfig.of(values, endpoints).listeners
    for endpoint in endpoints:
        if is_loopback([endpoint]) or listeners[endpoint.listener_name].is_locked:
            continue
        raise ConfigError(
            f"{endpoint} is open beyond this machine: it needs TLS, and either logins (SASL_SSL) "
            "or client certificates (SSL with ssl.client.auth=required). `ottla secure init` makes "
            "a configuration that has them; --insecure starts the node as it is"
        )


def validate_open_first(given: Mapping[str, object]) -> None:
    """ConfigError if a gateway next to the node without a login could not connect."""
    values = ConfigValues(given)
    texts: tuple[str, ...] = values[LISTENERS]
    endpoints = parse_listeners(texts)
    first = SecurityConfig.of(values, endpoints).listeners[endpoints[0].listener_name]
    if first.protocol is not SecurityProtocol.PLAINTEXT:
        raise ConfigError(
            f"--http runs a gateway, and {endpoints[0]} wants it to log in; say how with "
            "--http-config FILE, or put a listener PLAINTEXT://localhost:PORT first"
        )
