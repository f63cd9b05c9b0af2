"""Carrying out a plan: partitions get their new replicas, some at a time, and somebody watches."""

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Any

from kio.schema.elect_leaders.v2.response import ElectLeadersResponse
from kio.schema.list_partition_reassignments.v0 import request as listing
from kio.schema.types import TopicName
from kio.static.primitive import i32

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.copy_progress import CopyProgress
from ottla.cli.output import print_line, print_rows
from ottla.cli.replica_plan import Move, in_steps
from ottla.cli.replication_throttle import clear_throttle, set_throttle
from ottla.client.wire.cluster import by_topic
from ottla.client.wire.replicas import elect_request, reassign_request
from ottla.protocol.topics import TopicPartition

POLL_FIRST_S = 0.05
POLL_S = 0.5
INTERRUPTED = (
    "copying continues: `ottla reassignments watch` shows progress and removes the throttle at the "
    "end, `ottla reassignments cancel` cancels it"
)


def print_plan(moves: Sequence[Move]) -> None:
    print_rows(("topic", "partition", "replicas", "new_replicas"), plan_document(moves))


def plan_document(moves: Sequence[Move]) -> list[dict[str, Any]]:
    return [
        {
            **move.topic_partition._asdict(),
            "replicas": list(move.before),
            "new_replicas": list(move.after),
        }
        for move in moves
    ]


def settle(broker: BrokerCall) -> None:
    """Wait for what is being reassigned already: a plan is made for replicas that stay."""
    pending = ongoing_moves(broker)
    if pending:
        print_line(f"waiting for {len(pending)} reassignments already in progress", sys.stderr)
    while pending:
        time.sleep(POLL_S)
        pending = ongoing_moves(broker)


def carry_out(broker: BrokerCall, moves: Sequence[Move], step: int, throttle: int | None) -> None:
    """Returns when all are done; at most `step` partitions are copied at the same time.

    A throttle, in bytes a second, ends with it. Whoever is interrupted leaves the throttle to what
    is still being copied.
    """
    if throttle is not None:
        set_throttle(broker, moves, throttle)
    try:
        with CopyProgress(broker, moves) as progress:
            waiting = {move.topic_partition for move in moves}
            for part in in_steps(moves, step):
                reassign(broker, {move.topic_partition: move.after for move in part})
                topic_partitions = {move.topic_partition for move in part}
                waiting -= topic_partitions
                wait_for(broker, topic_partitions, progress, waiting)
    except KeyboardInterrupt:
        print_line(INTERRUPTED, sys.stderr)
        raise
    elect_preferred(broker, [move.topic_partition for move in moves])
    if throttle is not None:
        nodes = {node for move in moves for node in (*move.before, *move.after)}
        clear_throttle(broker, {move.topic_partition.topic for move in moves}, nodes)


def wait_for(
    broker: BrokerCall,
    pending: Set[TopicPartition],
    progress: CopyProgress,
    later: Set[TopicPartition] = frozenset(),
) -> None:
    """Until these are not being reassigned any more; `later` has those that are not begun yet."""
    delay_s = POLL_FIRST_S
    reported: set[int] = set()
    while pending:
        moves = ongoing_moves(broker, pending)
        pending = pending & {move.topic_partition for move in moves}
        progress.update(pending | later)
        reported |= _report_nodes_down(broker, moves, reported)
        if pending:
            time.sleep(delay_s)
            delay_s = min(delay_s * 2, POLL_S)


def _report_nodes_down(broker: BrokerCall, moves: Sequence[Move], reported: Set[int]) -> set[int]:
    """A reassignment ends when all its replicas have caught up. Returns the nodes told of."""
    wanted = Counter(node for move in moves for node in move.after)
    nodes = broker.nodes() if moves else []
    down = {node.node_id for node in nodes if node.fenced and wanted[node.node_id]}
    for node in sorted(down - reported):
        print_line(
            f"{wanted[node]} partitions wait for node {node}, which is down: start it, or cancel "
            "the moves with `ottla reassignments cancel`",
            sys.stderr,
        )
    return down


def take_back(broker: BrokerCall, moves: Sequence[Move]) -> None:
    """Cancel moves. Their targets have changed the order of the replicas, and with it who is to
    lead; those that led when this was called come first again, whoever leads meanwhile."""
    partitions = broker.partitions()
    reassign(broker, {move.topic_partition: None for move in moves})
    orders = {}
    for move in moves:
        leader = partitions[move.topic_partition].leader_id
        if leader in move.before and move.before[0] != leader:
            orders[move.topic_partition] = (
                leader,
                *(replica for replica in move.before if replica != leader),
            )
    if orders:
        reassign(broker, orders)


def reassign(broker: BrokerCall, wanted: Mapping[TopicPartition, tuple[int, ...] | None]) -> None:
    """None takes a reassignment back."""
    response = broker.call(reassign_request(wanted))
    check(response.error_code, "reassignment", response.error_message)
    for topic in response.responses:
        for partition in topic.partitions:
            topic_partition = TopicPartition(topic.name, partition.partition_index)
            check(partition.error_code, str(topic_partition), partition.error_message)


def ongoing_moves(
    broker: BrokerCall, topic_partitions: Set[TopicPartition] | None = None
) -> list[Move]:
    """Of these partitions; None for all."""
    topics = None
    if topic_partitions is not None:
        topics = tuple(
            listing.ListPartitionReassignmentsTopics(
                name=TopicName(topic), partition_indexes=tuple(map(i32, partitions))
            )
            for topic, partitions in by_topic(topic_partitions).items()
        )
    request = listing.ListPartitionReassignmentsRequest(topics=topics)
    response = broker.call(request)
    check(response.error_code, "reassignment", response.error_message)
    return sorted(
        Move(
            TopicPartition(topic.name, partition.partition_index),
            tuple(node for node in partition.replicas if node not in partition.adding_replicas),
            tuple(node for node in partition.replicas if node not in partition.removing_replicas),
        )
        for topic in response.topics
        for partition in topic.partitions
    )


def elect_preferred(
    broker: BrokerCall, topic_partitions: Sequence[TopicPartition]
) -> ElectLeadersResponse:
    """The first replica of each leads it now, where that is in sync, and not some time later."""
    response: ElectLeadersResponse = broker.call(elect_request(sorted(topic_partitions)))
    check(response.error_code, "election")
    return response
