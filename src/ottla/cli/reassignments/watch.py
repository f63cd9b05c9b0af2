"""`ottla reassignments watch`: how far the copying is; it takes the throttle off at the end."""

from typing import Annotated

from cyclopts import Parameter

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.copy_progress import CopyProgress
from ottla.cli.output import print_line
from ottla.cli.reassignment import elect_preferred, ongoing_moves, wait_for
from ottla.cli.replication_throttle import change_rate, clear_throttle, parse_rate


def watch(
    *,
    throttle: Annotated[
        str | None, Parameter(help="Throttle the moves to this many bytes per second.")
    ] = None,
    connection: Connection = DEFAULT_CONNECTION,
) -> None:
    """Show the progress of reassignments until they are done, then remove the throttle."""
    rate = parse_rate(throttle)
    with bootstrap_broker(connection) as broker:
        nodes = [node.node_id for node in broker.nodes()]
        if rate is not None:
            change_rate(broker, nodes, rate)
        moves = ongoing_moves(broker)
        with CopyProgress(broker, moves) as progress:
            wait_for(broker, {move.topic_partition for move in moves}, progress)
        if moves:
            elect_preferred(broker, [move.topic_partition for move in moves])
        clear_throttle(
            broker, {topic_partition.topic for topic_partition in broker.partitions()}, nodes
        )
    print_line(f"{len(moves)} partitions were changed; nothing is throttled")
