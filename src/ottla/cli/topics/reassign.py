"""`ottla topics reassign`: other replicas for the partitions of a topic."""

from ottla.cli.broker_call import BrokerCall, bootstrap_broker
from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_json, print_line
from ottla.cli.parameters import AsJson, Flag, Step, Throttle, validate_positive
from ottla.cli.reassignment import (
    carry_out,
    ongoing_moves,
    plan_document,
    print_plan,
    take_back,
)
from ottla.cli.replica_plan import Assignments, Move, plan_replication_factor
from ottla.cli.replication_throttle import clear_throttle, parse_rate
from ottla.cli.topic_lookup import no_topic
from ottla.protocol.topics import TopicPartition


def reassign_topic(
    topic: str,
    /,
    *,
    partition: list[int] | None = None,
    replicas: str | None = None,
    replication_factor: int | None = None,
    cancel: Flag = False,
    step: Step = 10,
    throttle: Throttle = None,
    dry_run: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Move a topic's partitions to other replicas, or change the number of replicas.

    Args:
        topic: Name of the topic.
        partition: Only this partition; may be repeated.
        replicas: Node ids, such as 1,2,3; the first is the preferred leader.
        replication_factor: Number of replicas, placed automatically.
        cancel: Cancel the reassignment in progress.
        dry_run: Only show what would be moved.
    """
    validate_positive("--step", step)
    rate = parse_rate(throttle)
    if (replicas is not None) + (replication_factor is not None) + cancel != 1:
        raise UsageError("give one of --replicas, --replication-factor and --cancel")
    validate_positive("--replication-factor", replication_factor)
    wanted = None if replicas is None else _node_ids(replicas)
    with bootstrap_broker(connection) as broker:
        assignments = broker.assignments()
        topic_partitions = _topic_partitions(assignments, topic, partition)
        if cancel:
            _cancel(broker, topic_partitions)
            return
        if wanted is None and (pending := ongoing_moves(broker, topic_partitions)):
            raise CommandError(
                f"{pending[0].topic_partition} is being reassigned; wait, or use --cancel"
            )
        moves = [
            move
            for move in _moves(broker, assignments, topic, wanted, replication_factor)
            if move.topic_partition in topic_partitions
        ]
        if moves and not dry_run:
            carry_out(broker, moves, step, rate)
    if as_json:
        print_json(plan_document(moves))
    elif not moves:
        print_line(f"topic {topic} already has these replicas")
    elif dry_run:
        print_plan(moves)
    else:
        print_line(f"{len(moves)} partitions of topic {topic} were changed")


def _node_ids(text: str) -> tuple[int, ...]:
    words = text.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise UsageError(f"--replicas {text!r} is not a list of ids such as 1,2,3")
    return tuple(int(word) for word in words)


def _topic_partitions(
    assignments: Assignments, topic: str, partitions: list[int] | None
) -> set[TopicPartition]:
    there = {topic_partition for topic_partition in assignments if topic_partition.topic == topic}
    if not there:
        raise no_topic(topic)
    if partitions is None:
        return there
    wanted = {TopicPartition(topic, index) for index in partitions}
    for topic_partition in sorted(wanted - there):
        raise CommandError(
            f"there is no partition {topic_partition}; `ottla topics describe` shows them"
        )
    return wanted


def _moves(
    broker: BrokerCall,
    assignments: Assignments,
    topic: str,
    wanted: tuple[int, ...] | None,
    replication_factor: int | None,
) -> list[Move]:
    if wanted is not None:
        return [
            Move(topic_partition, replicas, wanted)
            for topic_partition, replicas in sorted(assignments.items())
            if topic_partition.topic == topic and replicas != wanted
        ]
    assert replication_factor is not None
    return plan_replication_factor(assignments, broker.plan_nodes(), topic, replication_factor)


def _cancel(broker: BrokerCall, topic_partitions: set[TopicPartition]) -> None:
    moves = ongoing_moves(broker, topic_partitions)
    if not moves:
        raise CommandError("nothing is being reassigned there")
    take_back(broker, moves)
    topics = {move.topic_partition.topic for move in moves}
    others = {move.topic_partition.topic for move in ongoing_moves(broker)}
    nodes = [] if others else [node.node_id for node in broker.nodes()]
    clear_throttle(broker, topics - others, nodes)
    print_line(f"{len(moves)} partitions keep the replicas that they had")
