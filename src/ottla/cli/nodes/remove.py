"""`ottla node remove`: a node that was stopped leaves the cluster for good."""

from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i32

from ottla.cli.broker_call import BrokerCall, bootstrap_broker, check
from ottla.cli.cluster_reader import ClusterReader, Voter
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.parameters import Flag

VERSION = 0


def remove(
    node: int, /, *, force: Flag = False, connection: Connection = DEFAULT_CONNECTION
) -> None:
    """Take a node that was drained and stopped out of the cluster.

    Args:
        node: Id of the node.
        force: Also if it still has replicas; what only it has is lost.
    """
    with bootstrap_broker(connection) as broker:
        reader = ClusterReader(broker)
        if not reader.node(node).fenced:
            raise CommandError(f"node {node} is running; stop it first")
        left = [place for place, on in reader.assignments().items() if node in on]
        if left and not force:
            raise CommandError(
                f"node {node} still has {len(left)} replicas, such as {left[0]}; "
                f"move them with `ottla node drain {node}`, or lose them with --force"
            )
        quorum = reader.quorum()
        if quorum is not None and node in quorum.voters:
            _remove_voter(broker, quorum.voters[node])
        response = broker.call(UnregisterBrokerRequest(broker_id=BrokerId(node)), VERSION)
        check(response.error_code, f"node {node}", response.error_message)
    print_line(f"node {node} is no part of the cluster any more")


def _remove_voter(broker: BrokerCall, voter: Voter) -> None:
    request = RemoveRaftVoterRequest(
        cluster_id=None, voter_id=i32(voter.node_id), voter_directory_id=voter.directory_id
    )
    response = broker.call(request, VERSION)
    check(response.error_code, f"node {voter.node_id}", response.error_message)
