"""`ottla node remove`: a node that was stopped leaves the cluster for good."""

from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest

from ottla.cli.broker_call import bootstrap_broker, check
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.nodes.votes import remove_voter
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag


def remove(
    node: int, /, *, force: Flag = False, connection: Connection = DEFAULT_CONNECTION
) -> None:
    """Remove a drained and stopped node from the cluster.

    Args:
        node: Id of the node.
        force: Remove it even if it still has replicas; records that only it has are lost.
    """
    with bootstrap_broker(connection) as broker:
        if not broker.node(node).fenced:
            connection.check_nodes(tolerates_few=True)  # Without a majority nobody is fenced.
            raise CommandError(f"node {node} is running; stop it first")
        left = [
            topic_partition for topic_partition, on in broker.assignments().items() if node in on
        ]
        if left and not force:
            raise CommandError(
                f"node {node} still has {len(left)} replicas, such as {left[0]}; "
                f"move them with `ottla node drain {node}`, or lose them with --force"
            )
        quorum = broker.quorum()
        if quorum is not None and node in quorum.voters:
            remove_voter(broker, quorum, node)
        response = broker.call(UnregisterBrokerRequest(broker_id=BrokerId(node)))
        check(response.error_code, f"node {node}", response.error_message)
    print_line(f"node {node} was removed from the cluster")
