"""`ottla node drain`: other nodes take over what one has."""

from ottla.cli.broker_call import CORDONED_KEY, BrokerCall, bootstrap_broker
from ottla.cli.broker_configs import alter_configs
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.nodes.votes import hand_over_vote
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag, Step, Throttle, validate_positive
from ottla.cli.reassignment import carry_out, plan_document, print_plan, settle
from ottla.cli.replica_plan import Move, plan_drain
from ottla.cli.replication_throttle import parse_rate
from ottla.client.wire.configs import BROKER

ALL_DIRECTORIES = "*"


def drain(
    node: int,
    /,
    *,
    step: Step = 10,
    throttle: Throttle = None,
    dry_run: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Move every replica, and with them every leader, from a node to the others.

    If it is a voter, another node takes its vote. It gets no new replicas until
    `ottla node undrain`.

    Args:
        node: Id of the node.
        dry_run: Only show what would be moved.
    """
    validate_positive("--step", step)
    rate = parse_rate(throttle)
    with bootstrap_broker(connection) as broker:
        broker.node(node)
        moves = planned = _plan(broker, node)
        if not dry_run:
            alter_configs(broker, {(BROKER, str(node)): {CORDONED_KEY: ALL_DIRECTORIES}})
            settle(broker)
            moves = planned = _plan(broker, node)
        while planned and not dry_run:
            carry_out(broker, planned, step, rate)
            planned = _plan(broker, node)  # What was placed on it just before it was cordoned.
        if not dry_run:
            hand_over_vote(broker, node)
    if as_json:
        print_json(plan_document(moves))
    elif dry_run:
        print_plan(moves)
    else:
        print_line(
            f"node {node} has nothing left; {len(moves)} partitions were moved. "
            f"Stop it, and take it out of the cluster with `ottla node remove {node}`."
        )


def _plan(broker: BrokerCall, node: int) -> list[Move]:
    return plan_drain(broker.assignments(), broker.plan_nodes(), node)
