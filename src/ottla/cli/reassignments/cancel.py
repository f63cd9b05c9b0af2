"""`ottla reassignments cancel`: partitions keep the replicas that they had."""

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_line
from ottla.cli.reassignment import ongoing_moves, take_back
from ottla.cli.replication_throttle import clear_throttle


def cancel(*, connection: Connection = DEFAULT_CONNECTION) -> None:
    """Cancel all reassignments in progress, and remove the throttle."""
    with bootstrap_broker(connection) as broker:
        moves = ongoing_moves(broker)
        if moves:
            take_back(broker, moves)
        topics = {topic_partition.topic for topic_partition in broker.partitions()}
        clear_throttle(broker, topics, [node.node_id for node in broker.nodes()])
    print_line(
        f"{len(moves)} partitions keep the replicas and the leader that they had; "
        "nothing is throttled"
    )
