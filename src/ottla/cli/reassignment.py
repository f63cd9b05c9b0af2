"""Carrying out a plan: partitions get their new replicas, some at a time, and somebody watches."""

import sys
import time
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from kio.schema.alter_partition_reassignments.v1 import request as alter
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.list_partition_reassignments.v0 import request as listing
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32

from ottla.cli.broker_call import BrokerCall, check
from ottla.cli.output import print_line, print_rows
from ottla.cli.replica_plan import Move, Place, in_steps

ALTER_VERSION = 0
LIST_VERSION = 0
ELECT_VERSION = 2
PREFERRED = i8(0)
POLL_S = 0.5


def print_plan(moves: Sequence[Move]) -> None:
    rows = [
        {"topic": move.place.topic, "partition": move.place.partition}
        | {"replicas": move.before, "new_replicas": move.after}
        for move in moves
    ]
    print_rows(("topic", "partition", "replicas", "new_replicas"), rows)


def plan_document(moves: Sequence[Move]) -> list[dict[str, Any]]:
    return [
        {
            "topic": move.place.topic,
            "partition": move.place.partition,
            "replicas": list(move.before),
            "new_replicas": list(move.after),
        }
        for move in moves
    ]


def settle(broker: BrokerCall) -> None:
    """Wait for what is being reassigned already: a plan is made for replicas that stay."""
    pending = ongoing(broker, None)
    if pending:
        print_line(f"waiting for {len(pending)} partitions on their way already", sys.stderr)
    while pending:
        time.sleep(POLL_S)
        pending = ongoing(broker, None)


def carry_out(broker: BrokerCall, moves: Sequence[Move], step: int) -> None:
    """Returns when all are done; at most `step` partitions are copied at the same time."""
    done = 0
    for part in in_steps(moves, step):
        reassign(broker, {move.place: move.after for move in part})
        pending = {move.place for move in part}
        while pending:
            still = pending & ongoing(broker, pending)
            done += len(pending) - len(still)
            if len(still) < len(pending):
                print_line(f"{done} of {len(moves)} partitions done", sys.stderr)
            pending = still
            if pending:
                time.sleep(POLL_S)
    lead_by_first(broker, [move.place for move in moves])


def reassign(broker: BrokerCall, wanted: dict[Place, tuple[int, ...] | None]) -> None:
    """None takes a reassignment back."""
    request = alter.AlterPartitionReassignmentsRequest(
        topics=tuple(
            alter.ReassignableTopic(
                name=TopicName(topic),
                partitions=tuple(_target(place.partition, wanted[place]) for place in places),
            )
            for topic, places in _by_topic(wanted)
        )
    )
    response = broker.call(request, ALTER_VERSION)
    check(response.error_code, "reassignment", response.error_message)
    for topic in response.responses:
        for one in topic.partitions:
            place = Place(topic.name, one.partition_index)
            check(one.error_code, str(place), one.error_message)


def ongoing(broker: BrokerCall, places: set[Place] | None) -> set[Place]:
    """Those of the places that are being reassigned; None for all."""
    topics = None
    if places is not None:
        topics = tuple(
            listing.ListPartitionReassignmentsTopics(
                name=TopicName(topic), partition_indexes=tuple(i32(one.partition) for one in found)
            )
            for topic, found in _by_topic(places)
        )
    request = listing.ListPartitionReassignmentsRequest(topics=topics)
    response = broker.call(request, LIST_VERSION)
    check(response.error_code, "reassignment", response.error_message)
    return {
        Place(topic.name, one.partition_index)
        for topic in response.topics
        for one in topic.partitions
    }


def lead_by_first(broker: BrokerCall, places: Sequence[Place]) -> None:
    """The first replica of each leads it now, where that is in sync, and not some time later."""
    request = ElectLeadersRequest(
        election_type=PREFERRED,
        topic_partitions=tuple(
            TopicPartitions(
                topic=TopicName(topic), partitions=tuple(i32(one.partition) for one in found)
            )
            for topic, found in _by_topic(places)
        ),
    )
    response = broker.call(request, ELECT_VERSION)
    check(response.error_code, "election")


def _target(partition: int, replicas: tuple[int, ...] | None) -> alter.ReassignablePartition:
    return alter.ReassignablePartition(
        partition_index=i32(partition),
        replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
    )


def _by_topic(places: Any) -> list[tuple[str, list[Place]]]:
    ordered: list[Place] = sorted(places)
    return [(topic, list(found)) for topic, found in groupby(ordered, key=lambda one: one.topic)]
