"""`ottla serve --shards N`: N nodes of a cluster for the cores of one machine.

One process uses one core. The shards have ids, ports and directories in a row, from those of the
first one on, and one rack, so that the copies of a partition and the voters of the metadata quorum
are on different machines.
"""

import asyncio
import os
import socket

from ottla.cli.child_nodes import PATIENT, ChildNode, ChildNodes
from ottla.cli.errors import CommandError, UsageError
from ottla.network.config import ADVERTISED_LISTENERS, LISTENERS
from ottla.network.endpoints import Endpoint, parse_endpoint
from ottla.node.config import (
    BROKER_RACK,
    NODE_ID,
    QUORUM_BOOTSTRAP_SERVERS,
    QUORUM_JOIN_TIMEOUT_MS,
    load_config,
)
from ottla.node.config_file import ConfigError
from ottla.node.exposure import validate_locked
from ottla.node.serve_settings import ServeSettings
from ottla.protocol.addresses import Address
from ottla.protocol.config import ConfigValues
from ottla.storage.broker_config import LOG_DIRS

SHARDS_MAX = 64


def serve_shards(settings: ServeSettings, count: int) -> int:
    if not 1 <= count <= SHARDS_MAX:
        raise UsageError(f"--shards {count} is not from 1 to {SHARDS_MAX}")
    try:
        loaded = load_config(settings, os.environ)
        if not settings.insecure:
            validate_locked(loaded)
        values = ConfigValues(loaded)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    nodes = [_shard(settings, values, index) for index in range(count)]
    return asyncio.run(ChildNodes(nodes, restarts=True).run())


def _shard(settings: ServeSettings, values: ConfigValues, index: int) -> ChildNode:
    node_id = values[NODE_ID] + index
    listeners = [_moved(text, index) for text in values[LISTENERS]]
    first = parse_endpoint(values[LISTENERS][0])
    arguments = ["--id", str(node_id), "--log-format", settings.log_format.value]
    if settings.config_file is not None:
        arguments += ["--config", str(settings.config_file)]
    for name, value in settings.overrides.items():
        arguments += ["--set", f"{name}={value}"]
    for listener in listeners:
        arguments += ["--listener", str(listener)]
    for directory in values[LOG_DIRS]:
        arguments += ["--data", f"{directory}/shard-{index}"]
    if settings.insecure:
        arguments.append("--insecure")
    if settings.new_cluster and not index:
        arguments.append("--new-cluster")
    for address in values[QUORUM_BOOTSTRAP_SERVERS] or ((_address(first),) if index else ()):
        arguments += ["--join", address]
    if index and QUORUM_JOIN_TIMEOUT_MS.name not in settings.overrides:
        arguments += PATIENT
    if values[ADVERTISED_LISTENERS]:
        advertised = ",".join(str(_moved(text, index)) for text in values[ADVERTISED_LISTENERS])
        arguments += ["--set", f"{ADVERTISED_LISTENERS.name}={advertised}"]
    if not values[BROKER_RACK]:
        arguments += ["--set", f"{BROKER_RACK.name}={socket.gethostname()}"]
    host = "localhost" if listeners[0].any_interface else listeners[0].host
    return ChildNode(node_id, host, listeners[0].port, tuple(arguments))


def _moved(text: str, index: int) -> Endpoint:
    endpoint = parse_endpoint(text)
    if not endpoint.port:
        raise CommandError("--shards needs a port; the shards have those that follow it")
    return endpoint._replace(port=endpoint.port + index)


def _address(endpoint: Endpoint) -> str:
    host = "localhost" if endpoint.any_interface else endpoint.host
    return str(Address(host, endpoint.port))
