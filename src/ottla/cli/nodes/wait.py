"""`ottla node wait`: until nodes serve and have caught up, as between the steps of an upgrade."""

import sys
import time
from typing import Annotated

from cyclopts import Parameter

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, ExitCode
from ottla.cli.output import print_line

POLL_S = 0.2


def wait(
    nodes: Annotated[list[int] | None, Parameter(name="node")] = None,
    /,
    *,
    timeout: Annotated[float, Parameter(help="Maximum seconds to wait.")] = 300.0,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Wait until nodes are active and all their replicas in sync.

    Args:
        nodes: Ids of the nodes; without any, all that are registered.
    """
    deadline = time.monotonic() + timeout
    shown = ""
    while reason := _missing(connection, nodes or []):
        if time.monotonic() > deadline:
            raise CommandError(f"after {timeout:g} s {reason}")
        if reason != shown and sys.stderr.isatty():
            print_line(reason, sys.stderr)
        shown = reason
        time.sleep(POLL_S)
    named = f"node {', '.join(map(str, nodes))}" if nodes else "every node"
    print_line(f"{named}: active and in sync")


def _missing(connection: Connection, wanted: list[int]) -> str:
    """What there is to wait for; empty when there is nothing."""
    try:
        with bootstrap_broker(connection) as broker:
            known = {node.node_id: node for node in broker.nodes()}
            partitions = broker.partitions()
        connection.check_nodes(tolerates_few=True)  # Or what is known may be old.
    except CommandError as error:
        if error.exit_code is not ExitCode.UNREACHABLE:
            raise
        return str(error)
    for node_id in wanted or known:
        if node_id not in known:
            return f"there is no node {node_id}"
        if known[node_id].fenced:
            return f"node {node_id} is fenced"
    late = [
        topic_partition
        for topic_partition, partition in partitions.items()
        if any(
            node in partition.replica_nodes and node not in partition.isr_nodes
            for node in wanted or known
        )
    ]
    return f"{len(late)} partitions are not in sync, such as {late[0]}" if late else ""
