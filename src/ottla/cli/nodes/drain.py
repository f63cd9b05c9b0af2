"""`ottla node drain`: other nodes take over what one has."""

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.cluster_reader import ClusterReader
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag, Step, validate_step
from ottla.cli.reassignment import carry_out, plan_document, print_plan, settle
from ottla.cli.replica_plan import NoRoom, plan_drain


def drain(
    node: int,
    /,
    *,
    step: Step = 10,
    dry_run: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Move every replica, and with them every leader, from a node to the others.

    Args:
        node: Id of the node.
        dry_run: Only show what would be moved.
    """
    validate_step(step)
    with bootstrap_broker(connection) as broker:
        reader = ClusterReader(broker)
        reader.node(node)
        settle(broker)
        try:
            moves = plan_drain(reader.assignments(), reader.plan_nodes(), node)
        except NoRoom as error:
            raise CommandError(str(error)) from None
        if moves and not dry_run:
            carry_out(broker, moves, step)
    if as_json:
        print_json(plan_document(moves))
    elif dry_run:
        print_plan(moves)
    else:
        print_line(
            f"node {node} has nothing left; {len(moves)} partitions were moved. "
            f"Stop it, and take it out of the cluster with `ottla node remove {node}`."
        )
