from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.list_partition_reassignments.v0.request import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32
from tests.controller.cluster import Cluster, answered
from tests.controller.test_topics import creation, topic

from ottla.controller.records import PartitionChangeRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

ORDERS = UUID(int=1)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(brokers=4)
    request = creation(topic("orders", assignments={0: (1, 2), 1: (2, 1)}))
    cluster.call(request)
    return cluster


def alter(
    cluster: Cluster,
    targets: list[tuple[int, tuple[int, ...] | None]],
    name: str = "orders",
    **fields: Any,
) -> Result[Any]:
    request = AlterPartitionReassignmentsRequest(
        topics=(
            ReassignableTopic(
                name=TopicName(name),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(index),
                        replicas=None if replicas is None else tuple(map(BrokerId, replicas)),
                    )
                    for index, replicas in targets
                ),
            ),
        ),
        **fields,
    )
    return cluster.result_of(request)


def listed(
    cluster: Cluster, topics: tuple[ListPartitionReassignmentsTopics, ...] | None = None
) -> ListPartitionReassignmentsResponse:
    request = ListPartitionReassignmentsRequest(topics=topics)
    result = cluster.result_of(request)
    assert result.records == ()
    response: ListPartitionReassignmentsResponse = answered(result)
    return response


def refusal(result: Result[Any]) -> ErrorCode:
    assert result.records == ()
    (each,) = answered(result).responses
    (partition,) = each.partitions
    code: ErrorCode = partition.error_code
    return code


def test_a_reassignment_begins_with_exact_records_and_response(cluster: Cluster) -> None:
    result = alter(cluster, [(0, (3, 2))])
    assert result.records == (
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=ORDERS,
            replicas=(BrokerId(3), BrokerId(2), BrokerId(1)),
            removing_replicas=(BrokerId(1),),
            adding_replicas=(BrokerId(3),),
        ),
    )
    assert result.response == AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        allow_replication_factor_change=True,
        error_code=ErrorCode.none,
        error_message=None,
        responses=(
            ReassignableTopicResponse(
                name=TopicName("orders"),
                partitions=(
                    ReassignablePartitionResponse(
                        partition_index=i32(0), error_code=ErrorCode.none, error_message=None
                    ),
                ),
            ),
        ),
    )


def test_what_goes_on_is_listed(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, [(1, (2, 3))]))
    expected = ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        topics=(
            OngoingTopicReassignment(
                name=TopicName("orders"),
                partitions=(
                    OngoingPartitionReassignment(
                        partition_index=i32(1),
                        replicas=(BrokerId(2), BrokerId(3), BrokerId(1)),
                        adding_replicas=(BrokerId(3),),
                        removing_replicas=(BrokerId(1),),
                    ),
                ),
            ),
        ),
    )
    assert listed(cluster) == expected
    named = ListPartitionReassignmentsTopics(
        name=TopicName("orders"), partition_indexes=(i32(0), i32(1), i32(7))
    )
    assert listed(cluster, (named,)) == expected
    other = ListPartitionReassignmentsTopics(name=TopicName("orders"), partition_indexes=(i32(0),))
    assert listed(cluster, (other,)).topics == ()
    assert listed(cluster, ()).topics == ()


def test_the_same_replicas_are_no_change(cluster: Cluster) -> None:
    assert alter(cluster, [(0, (1, 2))]).records == ()


def test_a_partition_named_twice_is_reassigned_once(cluster: Cluster) -> None:
    result = alter(cluster, [(0, (3, 2)), (0, (4, 2))])
    assert len(result.records) == 1
    codes = [partition.error_code for partition in answered(result).responses[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.invalid_request]


def test_the_number_of_replicas_changes_only_if_it_may(cluster: Cluster) -> None:
    result = alter(cluster, [(0, (1, 2, 3))], allow_replication_factor_change=False)
    assert refusal(result) is ErrorCode.invalid_replication_factor
    assert alter(cluster, [(0, (1, 2, 3))]).records != ()
    same = alter(cluster, [(0, (1, 3))], allow_replication_factor_change=False)
    assert same.records != ()


def test_a_reassignment_that_goes_on_tells_the_number_of_replicas(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, [(0, (1, 2, 3))]))
    fewer = alter(cluster, [(0, (1, 2))], allow_replication_factor_change=False)
    assert refusal(fewer) is ErrorCode.invalid_replication_factor
    (partition,) = answered(fewer).responses[0].partitions
    assert partition.error_message == "The replication factor is changed from 3 to 2"
    same = alter(cluster, [(0, (1, 2, 4))], allow_replication_factor_change=False)
    assert same.records != ()


def test_a_reassignment_that_adds_replicas_is_cancelled_whether_or_not_their_number_may_change(
    cluster: Cluster,
) -> None:
    cluster.apply(alter(cluster, [(0, (1, 2, 3))]))
    cancelled = alter(cluster, [(0, None)], allow_replication_factor_change=False)
    assert cancelled.records != ()


def test_who_was_to_be_added_and_is_not_any_more_is_dropped_at_once(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, [(0, (3, 2))]))
    assert alter(cluster, [(0, (4, 2))]).records == (
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=ORDERS,
            leader=BrokerId(1),
            replicas=(BrokerId(4), BrokerId(2), BrokerId(1)),
            adding_replicas=(BrokerId(4),),
        ),
    )


def test_a_cancelled_reassignment_gives_the_replicas_back(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, [(0, (3, 4))]))
    cluster.apply(alter(cluster, [(0, None)]))
    partition = cluster.partition("orders", 0)
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2), (1, 2), 1)
    assert (partition.adding_replicas, partition.removing_replicas) == ((), ())


@pytest.mark.parametrize(
    ("name", "target", "code"),
    [
        ("nothing", (0, (1,)), ErrorCode.unknown_topic_or_partition),
        ("orders", (9, (1,)), ErrorCode.unknown_topic_or_partition),
        ("orders", (0, ()), ErrorCode.invalid_replica_assignment),
        ("orders", (0, (1, 1)), ErrorCode.invalid_replica_assignment),
        ("orders", (0, (9,)), ErrorCode.invalid_replica_assignment),
        ("orders", (0, None), ErrorCode.no_reassignment_in_progress),
    ],
)
def test_a_wrong_reassignment_is_refused(
    cluster: Cluster, name: str, target: tuple[int, tuple[int, ...] | None], code: ErrorCode
) -> None:
    assert refusal(alter(cluster, [target], name=name)) is code
