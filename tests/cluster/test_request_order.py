"""Requests of one connection take effect in order even on a node that asks the controller."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from tests.clients.pairs import of_topics
from tests.clients.pairs.pair import PAIRS, Pair, World, metadata
from tests.clients.requests import TIMEOUT
from tests.clients.versions import build_request
from tests.clients.wire import Wire
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT

pytestmark = pytest.mark.process

CREATE_TOPICS, ELECT_LEADERS = 19, 43
ALTER_REASSIGNMENTS, LIST_REASSIGNMENTS = 45, 46
ROUNDS = 3

# Pairs that any node can answer, whoever leads the partitions.
OF_METADATA = (
    "create_topics_and_metadata",
    "create_topics_and_describe_topic_partitions",
    "create_topics_and_describe_configs",
    "create_topics_and_create_topics",
    "delete_topics_and_metadata",
    "delete_topics_and_create_topics",
    "create_partitions_and_metadata",
    "incremental_alter_configs_and_describe_configs",
    "alter_configs_and_describe_configs",
    "incremental_alter_configs_and_list_config_resources",
    "update_features_and_api_versions",
)


def create(topic: str, *replicas: int) -> Any:
    wanted = {
        "name": topic,
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": ({"partition_index": 0, "broker_ids": replicas},),
        "configs": (),
    }
    return build_request(CREATE_TOPICS, 7, {"topics": (wanted,), "timeout": TIMEOUT})


def reassign(topic: str, *replicas: int) -> Any:
    """No replicas means cancel."""
    partition = {"partition_index": 0, "replicas": replicas or None}
    topics = ({"name": topic, "partitions": (partition,)},)
    return build_request(ALTER_REASSIGNMENTS, 0, {"timeout": TIMEOUT, "topics": topics})


def reassignments(topic: str) -> Any:
    topics = ({"name": topic, "partition_indexes": (0,)},)
    return build_request(LIST_REASSIGNMENTS, 0, {"timeout": TIMEOUT, "topics": topics})


def adding_seen_by_second(_: Any, second: Any) -> list[int]:
    return [
        int(replica)
        for topic in second.topics
        for partition in topic.partitions
        for replica in partition.adding_replicas
    ]


def elect(topic: str) -> Any:
    topics = ({"topic": topic, "partitions": (0,)},)
    values = {"election_type": 0, "topic_partitions": topics, "timeout": TIMEOUT}
    return build_request(ELECT_LEADERS, 2, values)


def leader(response: Any) -> int:
    return int(response.topics[0].partitions[0].leader_id)


def pairs(world: World, asked: int, other: int, paused: int) -> Iterator[Pair]:
    for name in OF_METADATA:
        yield PAIRS[name](world)
    topic = world.new_name()
    world.call(create(topic, asked))
    moving, listing = reassign(topic, asked, paused), reassignments(topic)
    yield Pair(moving, listing, adding_seen_by_second, [paused])
    yield Pair(reassign(topic), listing, adding_seen_by_second, [])

    topic = world.new_name()
    world.call(create(topic, asked, other))
    world.call(reassign(topic, other, asked))
    while reassignments_are_under_way(world, topic):
        pass
    assert leader(world.call(metadata(topic))) == asked
    yield Pair(elect(topic), metadata(topic), lambda _, second: leader(second), other)


def reassignments_are_under_way(world: World, topic: str) -> bool:
    return bool(world.call(reassignments(topic)).topics)


def world_of(wire: Wire) -> World:
    numbers = itertools.count()

    def create_topic(partitions: int) -> str:
        topic = f"topic-{next(numbers)}"
        world.call(of_topics.create(topic, partitions))
        return topic

    world = World(wire, lambda: f"name-{next(numbers)}", create_topic)
    return world


def test_the_order_of_effects_on_a_node_that_asks_the_controller(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    controller = cluster.leader()
    asked, paused = sorted({1, 2, 3} - {controller})
    with Wire(cluster.bootstrap_of(asked)) as wire, cluster.paused(paused):
        world = world_of(wire)
        for _ in range(ROUNDS):
            for pair in pairs(world, asked, controller, paused):
                wire.send(pair.first, pair.second)
                first, second = wire.receive(pair.first), wire.receive(pair.second)
                assert pair.see(first, second) == pair.expected, (first, second)
                pair.after()
