from typing import Any
from uuid import UUID

import pytest
from kio.schema.types import BrokerId
from kio.static.primitive import i32
from tests.controller.cluster import Cluster
from tests.controller.test_topics import creation, topic

from ottla.controller import internal_topics
from ottla.controller.image import BROKER_RESOURCE
from ottla.controller.internal_topics import BUSY_INTERVAL_MS, IDLE_INTERVAL_MS
from ottla.controller.records import ConfigRecord, PartitionChangeRecord

INTERNAL, TIMER = "__internal", "internal topics"


def grown(partitions: int, *, brokers: int = 3, on: int = 1, **arguments: Any) -> Cluster:
    """The topic was created while `on` was the only broker."""
    cluster = Cluster(brokers=brokers, **arguments)
    cluster.machine.on_loaded(0)
    assignments = dict.fromkeys(range(partitions), (on,))
    for name in (INTERNAL, "orders"):
        cluster.call(creation(topic(name, assignments=assignments)))
    return cluster


def look(cluster: Cluster) -> tuple[tuple[Any, ...], int]:
    """The records of the next check, and the wait before the one after it."""
    deadline_ms, expiry = cluster.timers.deadlines.pop(TIMER)
    result = expiry(deadline_ms)
    cluster.apply(result)
    return result.records, cluster.timers.deadlines[TIMER][0] - deadline_ms


def replicas(cluster: Cluster, name: str = INTERNAL) -> list[tuple[int, ...]]:
    return [partition.replicas for partition in cluster.image.topics[name].partitions.values()]


def complete(cluster: Cluster, *indexes: int) -> None:
    """All replicas of these partitions are in sync."""
    for index in indexes:
        partition = cluster.partition(INTERNAL, index)
        cluster.replay(
            PartitionChangeRecord(
                partition_id=i32(index),
                topic_id=partition.topic_id,
                isr=partition.replicas,
                adding_replicas=(),
            )
        )


def test_internal_topics_get_the_replicas_that_they_lack() -> None:
    cluster = grown(1)
    assert cluster.timers.deadlines[TIMER][0] == IDLE_INTERVAL_MS
    records, next_ms = look(cluster)
    assert records == (
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=UUID(int=1),
            replicas=(BrokerId(1), BrokerId(2), BrokerId(3)),
            adding_replicas=(BrokerId(2), BrokerId(3)),
        ),
    )
    assert next_ms == BUSY_INTERVAL_MS
    assert look(cluster) == ((), BUSY_INTERVAL_MS)
    complete(cluster, 0)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)
    assert replicas(cluster, "orders") == [(1,)]


def test_their_leaders_are_spread_with_them() -> None:
    cluster = grown(6)
    look(cluster)
    assert sorted(broker_ids[0] for broker_ids in replicas(cluster)) == [1, 1, 2, 2, 3, 3]
    assert {tuple(sorted(broker_ids)) for broker_ids in replicas(cluster)} == {(1, 2, 3)}


def test_replicas_are_even_over_more_brokers_than_each_partition_needs() -> None:
    cluster = grown(4, brokers=5)
    look(cluster)
    placed = [replica for broker_ids in replicas(cluster) for replica in broker_ids]
    assert [placed.count(broker_id) for broker_id in range(1, 6)] == [4, 2, 2, 2, 2]


def test_replicas_go_to_other_racks() -> None:
    cluster = grown(2, brokers=5, racks=("a", "a", "a", "b", "c"))
    look(cluster)
    assert [sorted(broker_ids) for broker_ids in replicas(cluster)] == [[1, 4, 5], [1, 4, 5]]


def test_only_a_few_partitions_change_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_topics, "PARTITIONS_AT_ONCE", 2)
    cluster = grown(3)
    assert [record.partition_id for record in look(cluster)[0]] == [0, 1]
    assert look(cluster) == ((), BUSY_INTERVAL_MS)
    complete(cluster, 1)
    assert [record.partition_id for record in look(cluster)[0]] == [2]
    complete(cluster, 0, 2)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)


def test_a_smaller_cluster_uses_all_its_brokers() -> None:
    cluster = grown(1, brokers=1)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)
    cluster.register(2)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)  # It is not active yet.
    cluster.heartbeat(2)
    assert look(cluster)[0][0].replicas == (1, 2)
    complete(cluster, 0)
    cluster.register(3)
    cluster.heartbeat(3)
    assert look(cluster)[0][0].replicas == (1, 2, 3)


def test_a_broker_that_is_away_gets_nothing_and_keeps_what_it_has() -> None:
    cluster = grown(1, brokers=4, on=2)
    cluster.expire_session(3)
    look(cluster)
    assert sorted(replicas(cluster)[0]) == [1, 2, 4]
    complete(cluster, 0)
    cluster.expire_session(4)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)


def test_a_partition_without_a_leader_is_left_alone() -> None:
    cluster = grown(1, on=2)
    cluster.expire_session(2)
    assert look(cluster) == ((), IDLE_INTERVAL_MS)


def test_the_factor_can_change_while_the_cluster_runs() -> None:
    cluster = grown(1)
    key: dict[str, Any] = {
        "resource_type": BROKER_RESOURCE,
        "resource_name": "",
        "name": "internal.factor",
    }
    cluster.replay(ConfigRecord(**key, value="1"))
    assert look(cluster) == ((), IDLE_INTERVAL_MS)
    cluster.replay(ConfigRecord(**key, value="2"))
    assert look(cluster)[0][0].replicas == (1, 2)
