"""Held and delayed records of share groups when their leader dies, and when all nodes die."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from confluent_kafka import KafkaException
from kio.schema.alter_share_group_offsets.v0 import request as alter
from kio.schema.describe_share_group_offsets.v1 import request as describe
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i64
from tests.clients.test_queues import (
    ACCEPT,
    HOUR_MS,
    RELEASE,
    Acquired,
    Gateway,
    is_reached,
    now_ms,
    receive_all,
)
from tests.clients.test_share_groups import configured_group
from tests.clients.wire import Wire
from tests.cluster.conftest import StartCluster
from tests.cluster.processes import PATIENT, ClusterProcesses, wait_until
from tests.cluster.topics import create, produce, state

from ottla.client.wire.errors import Unreachable
from ottla.protocol.errors import ErrorCode

pytestmark = pytest.mark.process

FEW_COORDINATORS = (
    *("--set", "offsets.topic.num.partitions=3"),
    *("--set", "share.coordinator.state.topic.num.partitions=3"),
)
R = TypeVar("R")


def at_leader(cluster: ClusterProcesses, call: Callable[[Gateway], R]) -> R:
    """Like another gateway, retrying until the partition's leader answers."""
    results: list[R] = []

    def attempt() -> bool:
        try:
            leader = state(cluster, "orders").leader
            if leader < 0 or leader not in cluster.awake:
                return False
            gateway = Gateway(cluster.bootstrap_of(leader), "workers", "orders", "other")
            try:
                results.append(call(gateway))
            finally:
                gateway.close()
        except (AssertionError, IndexError, KafkaException, Unreachable):
            return False
        return True

    wait_until(attempt, "an answer of the leader")
    return results[0]


def test_holds_and_delays_outlive_leaders_and_restarts(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *FEW_COORDINATORS, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    create(cluster, "orders", assignment=[[1, 2, 3]])
    group = configured_group(cluster.bootstrap, "workers")
    gateway = Gateway(cluster.bootstrap_of(1), group, "orders")
    gateway.join()
    assert produce(cluster, "orders", *"abcdef") == [None] * 6
    receive_all(gateway, 6, hold_ms=HOUR_MS)
    assert gateway.settle(0, 0, 1, ACCEPT) is ErrorCode.none
    due_ms = now_ms() + 5_000
    assert gateway.settle(1, 1, 1, RELEASE, delay_ms=i64(5_000)) is ErrorCode.none

    cluster.kill(1)
    gateway.close()
    wait_until(lambda: state(cluster, "orders").leader in (2, 3), "another leader")

    def accept(offset: int, count: int, holder: str) -> ErrorCode:
        return at_leader(
            cluster, lambda it: it.settle(offset, offset, count, ACCEPT, holder=holder)
        )

    def receive() -> Acquired:
        return at_leader(cluster, lambda it: receive_all(it, 1, hold_ms=HOUR_MS))

    assert accept(2, 1, "gateway") is ErrorCode.none
    assert accept(0, 1, "gateway") is ErrorCode.invalid_record_state
    assert receive() == [(1, 1, 2)]
    assert is_reached(due_ms)
    assert accept(1, 1, "gateway") is ErrorCode.invalid_record_state

    cluster.restart(1)
    for node_id in (1, 2, 3):
        cluster.kill(node_id)
    for node_id in (1, 2, 3):
        cluster.restart(node_id, wait=False)
    assert accept(1, 2, "other") is ErrorCode.none
    assert at_leader(cluster, lambda it: it.receive(wait_ms=0)) == []
    released = at_leader(
        cluster, lambda it: it.settle(4, 4, 1, RELEASE, holder="gateway", delay_ms=i64(0))
    )
    assert released is ErrorCode.none
    assert receive() == [(4, 4, 2)]


def test_lag_is_told_of_partitions_that_other_nodes_lead(start_cluster: StartCluster) -> None:
    cluster = start_cluster(3, *FEW_COORDINATORS, *PATIENT)
    cluster.wait_for_voters(1, 2, 3)
    create(cluster, "orders", assignment=[[1], [2], [3]])
    for partition in range(3):
        assert produce(cluster, "orders", *"ab", partition=partition) == [None] * 2
    found: list[int] = []

    def ask(node_id: int) -> bool:
        with Wire(cluster.bootstrap_of(node_id)) as wire:
            wire.call(FindCoordinatorRequest(key_type=i8(0), coordinator_keys=("new",)))
            if set_offsets(wire) == [ErrorCode.none] * 3:
                found.extend(lags(wire))
        return bool(found)

    wait_until(lambda: any(map(ask, (1, 2, 3))), "an answer of the group's coordinator")
    assert found == [1, 1, 1]


def set_offsets(wire: Wire) -> list[ErrorCode]:
    """Sets a new group's offset to 1 in each partition."""
    partitions = tuple(
        alter.AlterShareGroupOffsetsRequestPartition(
            partition_index=i32(partition), start_offset=i64(1)
        )
        for partition in range(3)
    )
    topic = alter.AlterShareGroupOffsetsRequestTopic(
        topic_name=TopicName("orders"), partitions=partitions
    )
    response = wire.call(
        alter.AlterShareGroupOffsetsRequest(group_id=GroupId("new"), topics=(topic,))
    )
    return [partition.error_code for topic in response.responses for partition in topic.partitions]


def lags(wire: Wire) -> list[int]:
    group = describe.DescribeShareGroupOffsetsRequestGroup(group_id=GroupId("new"), topics=None)
    response = wire.call(describe.DescribeShareGroupOffsetsRequest(groups=(group,)))
    return [partition.lag for topic in response.groups[0].topics for partition in topic.partitions]
