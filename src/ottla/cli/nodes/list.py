"""`ottla node list`: the nodes, what they do, and what is on them."""

from collections import Counter
from typing import Any

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.cluster_nodes import ClusterNode, NodeSettings
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_listing
from ottla.cli.parameters import AsJson

COLUMNS = (
    "node",
    "address",
    "rack",
    "state",
    "quorum",
    "leaders",
    "replicas",
    "out_of_sync",
    "version",
)


def list_nodes(*, connection: Connection = DEFAULT_CONNECTION, as_json: AsJson = False) -> None:
    """List the nodes of the cluster."""
    with bootstrap_broker(connection) as broker:
        rows = node_rows(broker)
    print_listing(COLUMNS, rows, as_json=as_json)


def node_rows(broker: BrokerCall) -> list[dict[str, Any]]:
    quorum = broker.quorum()
    leaders: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    for partition in broker.partitions().values():
        leaders[partition.leader_id] += 1
        replicas.update(partition.replica_nodes)
        in_sync.update(partition.isr_nodes)
    rows = []
    for node in broker.nodes():
        settings = broker.settings(node)
        row = {
            "node": node.node_id,
            "address": f"{node.host}:{node.port}",
            "rack": node.rack,
            "state": _state(node, settings, replicas[node.node_id]),
            "quorum": quorum.role(node.node_id) if quorum else None,
            "leaders": leaders[node.node_id],
            "replicas": replicas[node.node_id],
            "out_of_sync": replicas[node.node_id] - in_sync[node.node_id],
            "version": settings.version,
        }
        rows.append(row)
    return rows


def _state(node: ClusterNode, settings: NodeSettings, replicas: int) -> str:
    if node.fenced:
        return "fenced"
    if settings.cordoned:
        return "draining" if replicas else "drained"
    return "active"
