from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.cli.replica_plan import (
    Assignments,
    Move,
    Node,
    NoRoom,
    in_steps,
    plan_drain,
    plan_rebalance,
    plan_replication_factor,
    waiting_for_nodes,
)
from ottla.protocol.topics import TopicPartition


def nodes(*ids: int, racks: str = "") -> list[Node]:
    return [Node(node_id, racks[index] if racks else None) for index, node_id in enumerate(ids)]


def assigned(*replicas: tuple[int, ...], topic: str = "t") -> Assignments:
    return {TopicPartition(topic, index): each for index, each in enumerate(replicas)}


def after(assignments: Assignments, moves: list[Move]) -> Assignments:
    for move in moves:
        assert move.before == assignments[move.topic_partition]
    return assignments | {move.topic_partition: move.after for move in moves}


def replica_counts(assignments: Assignments) -> Counter[int]:
    return Counter(replica for replicas in assignments.values() for replica in replicas)


def leader_counts(assignments: Assignments) -> Counter[int]:
    return Counter(replicas[0] for replicas in assignments.values())


def test_a_drained_node_has_nothing_left() -> None:
    before = assigned((1, 2), (2, 3), (3, 1))
    assert plan_drain(before, nodes(1, 2, 3), 3) == [
        Move(TopicPartition("t", 1), (2, 3), (2, 1)),
        Move(TopicPartition("t", 2), (3, 1), (2, 1)),
    ]


def test_a_node_that_has_nothing_is_drained_already() -> None:
    assert plan_drain(assigned((1, 2)), nodes(1, 2, 3), 3) == []


def test_draining_needs_room() -> None:
    with pytest.raises(NoRoom, match="to take t-0; add a node, or give t fewer replicas"):
        plan_drain(assigned((1, 2)), nodes(1, 2), 2)


def test_draining_keeps_replicas_in_different_racks() -> None:
    before = assigned((1, 2), (1, 2))
    moved = after(before, plan_drain(before, nodes(1, 2, 3, 4, racks="abab"), 2))
    assert all(set(replicas) == {1, 4} for replicas in moved.values())


def test_a_fenced_node_gets_nothing_and_keeps_what_it_has() -> None:
    before = assigned((1, 2), (1, 2), (1, 3), (1, 3))
    cluster = [*nodes(1, 2), Node(3, active=False)]
    moves = plan_rebalance(before, cluster)
    moved = after(before, moves)
    assert [3 in replicas for replicas in moved.values()] == [False, False, True, True]


def test_a_new_node_gets_its_share() -> None:
    before = assigned(*[(1, 2), (2, 1)] * 6)
    moves = plan_rebalance(before, nodes(1, 2, 3))
    moved = after(before, moves)
    assert replica_counts(moved) == {1: 8, 2: 8, 3: 8}
    assert leader_counts(moved) == {1: 4, 2: 4, 3: 4}
    assert sum(move.copies for move in moves) == 8


def test_leaders_are_spread_without_a_copy() -> None:
    before = assigned((1, 2, 3), (1, 2, 3), (1, 2, 3))
    moves = plan_rebalance(before, nodes(1, 2, 3))
    assert leader_counts(after(before, moves)) == {1: 1, 2: 1, 3: 1}
    assert sum(move.copies for move in moves) == 0


def test_leaders_are_spread_along_a_chain() -> None:
    """Node 1 shares nothing with 3, but 2 does."""
    before = assigned((1, 2), (1, 2), (2, 3), (2, 3), (1, 2))
    plan = plan_drain(before, nodes(1, 2, 3, 4), 4)
    assert plan == []
    moved = after(before, plan_rebalance(before, nodes(1, 2, 3)))
    counts = leader_counts(moved)
    assert max(counts.values()) - min(counts[node] for node in (1, 2, 3)) <= 1


def test_replicas_in_one_rack_are_moved_apart() -> None:
    before = assigned((1, 2), (3, 4))
    moved = after(before, plan_rebalance(before, nodes(1, 2, 3, 4, racks="aabb")))
    for replicas in moved.values():
        assert len({(node_id - 1) // 2 for node_id in replicas}) == 2


def test_what_is_even_stays() -> None:
    before = assigned((1, 2, 3), (2, 3, 1), (3, 1, 2))
    assert plan_rebalance(before, nodes(1, 2, 3)) == []


def test_a_topic_gets_more_replicas_where_there_is_most_room() -> None:
    before = assigned((1,), (2,)) | assigned((3,), (3,), (3,), topic="other")
    moves = plan_replication_factor(before, nodes(1, 2, 3), "t", 2)
    assert moves == [
        Move(TopicPartition("t", 0), (1,), (1, 2)),
        Move(TopicPartition("t", 1), (2,), (2, 1)),
    ]
    with pytest.raises(NoRoom):
        plan_replication_factor(before, nodes(1, 2, 3), "t", 4)


def test_a_topic_gets_fewer_replicas_and_keeps_its_leaders() -> None:
    before = assigned((1, 2, 3), (2, 3, 1))
    moved = after(before, plan_replication_factor(before, nodes(1, 2, 3), "t", 1))
    assert moved == assigned((1,), (2,))


def test_a_replica_on_a_dead_node_goes_first() -> None:
    cluster = [*nodes(1, 3), Node(2, active=False)]
    moves = plan_replication_factor(assigned((1, 2, 3)), cluster, "t", 2)
    assert [move.after for move in moves] == [(1, 3)]


def test_moves_are_made_in_steps() -> None:
    moves = [Move(TopicPartition("t", index), (1,), (2,)) for index in range(5)]
    assert [len(step) for step in in_steps(moves, 2)] == [2, 2, 1]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Assignments, list[Node]]:
    count = draw(st.integers(2, 6))
    racks = draw(st.lists(st.sampled_from("abc"), min_size=count, max_size=count))
    has_racks = draw(st.booleans())
    members = [
        Node(
            node_id,
            racks[node_id] if has_racks else None,
            active=node_id < 2 or draw(st.booleans()),
        )
        for node_id in range(count)
    ]
    replicas = st.lists(st.integers(0, count - 1), min_size=1, max_size=3, unique=True).map(tuple)
    topics = draw(st.lists(st.lists(replicas, max_size=8), max_size=3))
    assignments: Assignments = {}
    for number, partitions in enumerate(topics):
        assignments |= assigned(*partitions, topic=f"t{number}")
    return assignments, members


@settings(max_examples=100)
@given(clusters())
def test_any_cluster_is_rebalanced(
    cluster: tuple[Assignments, list[Node]],
) -> None:
    before, members = cluster
    moves = plan_rebalance(before, members)
    moved = after(before, moves)
    active = {node.node_id for node in members if node.active}
    racks = {node.node_id: node.rack or node.node_id for node in members}
    for topic_partition, replicas in moved.items():
        assert len(set(replicas)) == len(replicas) == len(before[topic_partition])
        assert set(replicas) - set(before[topic_partition]) <= active
        assert set(before[topic_partition]) - active <= set(replicas)
        assert len({racks[node_id] for node_id in replicas}) >= len(
            {racks[node_id] for node_id in before[topic_partition]}
        )
    if not any(node.rack for node in members):
        counts = [replica_counts(moved)[node] for node in active]
        assert max(counts) - min(counts) <= 1
    assert plan_rebalance(moved, members) == []


def test_a_rebalance_moves_nothing_that_waits_for_a_node_that_is_down() -> None:
    """It would wait for the replica there, which cannot catch up."""
    nodes = [Node(1), Node(2), Node(3, active=False, down=True)]
    assignments: dict[TopicPartition, tuple[int, ...]] = {
        TopicPartition("a", index): (1, 3) for index in range(4)
    }
    assert plan_rebalance(assignments, nodes) == []
    assert waiting_for_nodes(assignments, nodes) == {
        topic_partition: {3} for topic_partition in assignments
    }
    assignments |= {TopicPartition("b", index): (1,) for index in range(4)}
    moved = plan_rebalance(assignments, nodes)
    assert {move.topic_partition.topic for move in moved} == {"b"}
    assert len(moved) == 4  # Pending moves count: node 1 keeps it.
