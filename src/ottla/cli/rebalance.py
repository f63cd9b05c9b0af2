"""`ottla rebalance`: replicas and leaders evenly over the nodes."""

import sys
from collections.abc import Mapping

from ottla.cli.broker_call import bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag, Step, Throttle, validate_positive
from ottla.cli.reassignment import carry_out, plan_document, print_plan, settle
from ottla.cli.replica_plan import plan_rebalance, waiting_for_nodes
from ottla.cli.replication_throttle import parse_rate
from ottla.protocol.topics import TopicPartition


def rebalance(
    *,
    step: Step = 10,
    throttle: Throttle = None,
    dry_run: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Spread replicas and leaders evenly over the active nodes.

    Args:
        dry_run: Only show what would be moved.
    """
    validate_positive("--step", step)
    rate = parse_rate(throttle)
    with bootstrap_broker(connection) as broker:
        settle(broker)
        assignments, nodes = broker.assignments(), broker.plan_nodes()
        moves = plan_rebalance(assignments, nodes)
        waiting = waiting_for_nodes(assignments, nodes)
        _tell_of_waiting(waiting)
        if moves and not dry_run:
            carry_out(broker, moves, step, rate)
    if as_json:
        print_json(plan_document(moves))
    elif not moves:
        print_line("nothing else to move" if waiting else "replicas and leaders are even already")
    elif dry_run:
        print_plan(moves)
    else:
        copies = sum(move.copies for move in moves)
        print_line(f"{len(moves)} partitions were changed, {copies} replicas copied")


def _tell_of_waiting(waiting: Mapping[TopicPartition, set[int]]) -> None:
    if waiting:
        nodes = ", ".join(map(str, sorted(set().union(*waiting.values()))))
        print_line(
            f"{len(waiting)} partitions stay as they are: they have replicas on node {nodes}, "
            "which is down; start it, or remove it, and rebalance again",
            sys.stderr,
        )
