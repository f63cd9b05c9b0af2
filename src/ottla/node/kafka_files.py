"""Translates Kafka configuration files where Ottla expresses something differently."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, cast

from ottla.network.config import LISTENERS, NetworkConfig
from ottla.network.endpoints import Endpoint
from ottla.node.beginning import is_loopback
from ottla.node.joining import addresses_problem
from ottla.protocol.addresses import Address, parse_address
from ottla.protocol.config import ConfigKey, ConfigValues, int_key, list_key
from ottla.storage.broker_config import LOG_DIRS

logger = logging.getLogger(__name__)

_NODE_ID: Final = "node.id"
_BOOTSTRAP_SERVERS: Final = "controller.quorum.bootstrap.servers"


def _voters_problem(voters: Sequence[str]) -> str | None:
    for voter in voters:
        node_id, separator, _ = voter.partition("@")
        if not separator or not node_id.isdecimal():
            return f"{voter!r} is not of the form ID@HOST:PORT"
    return addresses_problem([voter.partition("@")[2] for voter in voters])


LOG_DIR: ConfigKey[tuple[str, ...]] = list_key(
    "log.dir", (), "An alias of log.dirs, which takes precedence."
)
BROKER_ID = int_key("broker.id", -1, "An alias of node.id, which takes precedence.")
QUORUM_VOTERS: ConfigKey[tuple[str, ...]] = list_key(
    "controller.quorum.voters",
    (),
    "Nodes of the cluster, as ID@HOST:PORT. Used as the nodes to join if "
    "controller.quorum.bootstrap.servers is empty; the cluster's metadata says who votes.",
    _voters_problem,
)
_LOCALHOST: Final = frozenset({"localhost", "127.0.0.1", "::1"})
KAFKA_FILE_KEYS: Final = (LOG_DIR, BROKER_ID, QUORUM_VOTERS)


def as_kafka_means(given: Mapping[str, object], *, joins: bool, is_open: bool) -> dict[str, object]:
    """`joins`: nodes to join were given at the start; `is_open`: security is not wanted."""
    values = dict(given)
    if LOG_DIR.name in values:
        values.setdefault(LOG_DIRS.name, values[LOG_DIR.name])
    if cast("int", values.get(BROKER_ID.name, -1)) >= 0:
        values.setdefault(_NODE_ID, values[BROKER_ID.name])
    voters = cast("tuple[str, ...]", values.get(QUORUM_VOTERS.name, ()))
    if voters:
        values.setdefault(_BOOTSTRAP_SERVERS, tuple(voter.partition("@")[2] for voter in voters))
    if not is_open:
        _narrow(values)
    if not joins and _BOOTSTRAP_SERVERS in values:
        addresses = cast("tuple[str, ...]", values[_BOOTSTRAP_SERVERS])
        values[_BOOTSTRAP_SERVERS] = _without_own(addresses, values)
    return values


def _narrow(values: dict[str, object]) -> None:
    """A listener on all interfaces that advertises only loopback addresses listens only there."""
    listeners, advertised = _endpoints(values)
    if not advertised or not is_loopback(advertised):
        return
    wide = [listener for listener in listeners if not listener.host]
    if not wide:
        return
    values[LISTENERS.name] = tuple(
        str(listener if listener.host else listener._replace(host="localhost"))
        for listener in listeners
    )
    logger.info(
        "%s: only this machine can connect, since advertised.listeners sends clients to it; "
        "--insecure opens them to others",
        ", ".join(map(str, wide)),
    )


def _endpoints(
    given: Mapping[str, object],
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """Where the node listens, and what it advertises."""
    config = NetworkConfig.of(ConfigValues(given))
    return config.listeners, config.advertised_listeners


def _without_own(addresses: Sequence[str], values: Mapping[str, object]) -> tuple[str, ...]:
    """Kafka's single node bootstraps from itself; here it has no one to join."""
    listeners, advertised = _endpoints(values)
    own = [*listeners, *advertised]
    return tuple(text for text in addresses if not _is_own(parse_address(text), own))


def _is_own(address: Address, endpoints: Sequence[Endpoint]) -> bool:
    """Other nodes may be on other loopback addresses, with the same ports."""
    is_near = is_loopback([Endpoint("", address.host, address.port)])
    is_localhost = address.host in _LOCALHOST
    return any(
        address.port == endpoint.port
        and (
            address.host == endpoint.host
            or (is_near and endpoint.any_interface)
            or (is_localhost and endpoint.host in _LOCALHOST)
        )
        for endpoint in endpoints
    )
