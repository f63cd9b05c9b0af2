"""Keeps a node from listening beyond this machine without security, unless told to."""

from collections.abc import Mapping

from ottla.network.config import NetworkConfig
from ottla.network.endpoints import Endpoint
from ottla.network.security_config import ListenerConfig, SecurityConfig, SecurityProtocol
from ottla.node.beginning import is_loopback
from ottla.node.config_file import ConfigError
from ottla.protocol.config import ConfigValues


def validate_locked(given: Mapping[str, object]) -> None:
    """ConfigError if a listener that others can reach has no TLS, or allows anonymous clients."""
    for endpoint, listener in _listeners(given):
        if not is_loopback([endpoint]) and not listener.is_locked:
            raise ConfigError(
                f"{endpoint} is open beyond this machine: it needs TLS, and either logins "
                "(SASL_SSL) or client certificates (SSL with ssl.client.auth=required). `ottla "
                "secure init` makes a configuration that has them; --insecure starts the node as "
                "it is"
            )


def validate_open_first(given: Mapping[str, object]) -> None:
    """ConfigError if a gateway next to the node without a login could not connect."""
    endpoint, listener = _listeners(given)[0]
    if listener.protocol is not SecurityProtocol.PLAINTEXT:
        raise ConfigError(
            f"--http runs a gateway, and {endpoint} wants it to log in; say how with "
            "--http-config FILE, or put a listener PLAINTEXT://localhost:PORT first"
        )


def _listeners(given: Mapping[str, object]) -> list[tuple[Endpoint, ListenerConfig]]:
    values = ConfigValues(given)
    endpoints = NetworkConfig.of(values).listeners
    listeners = SecurityConfig.of(values, endpoints).listeners
    return [(endpoint, listeners[endpoint.listener_name]) for endpoint in endpoints]
