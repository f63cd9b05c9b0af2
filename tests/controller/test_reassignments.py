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
from tests.controller.cluster import Cluster
from tests.controller.test_topics import creation, topic

from ottla.controller.records import PartitionChangeRecord
from ottla.protocol.errors import ErrorCode
from ottla.protocol.times import NO_THROTTLE

ORDERS = UUID(int=1)


@pytest.fixture
def cluster():
    cluster = Cluster(brokers=4)
    request = creation(topic("orders", assignments={0: (1, 2), 1: (2, 1)}))
    cluster.call(request)
    return cluster


def alter(cluster, targets, name="orders", **fields):
    request = AlterPartitionReassignmentsRequest(
        topics=(
            ReassignableTopic(
                name=name,
                partitions=tuple(
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in targets
                ),
            ),
        ),
        **fields,
    )
    return cluster.result_of(request)


def listed(cluster, topics=None):
    request = ListPartitionReassignmentsRequest(topics=topics)
    result = cluster.result_of(request)
    assert result.records == ()
    return result.response


def refusal(result):
    assert result.records == ()
    (each,) = result.response.responses
    (one,) = each.partitions
    return one.error_code


def test_a_reassignment_begins_with_exact_records_and_response(cluster):
    result = alter(cluster, [(0, (3, 2))])
    assert result.records == (
        PartitionChangeRecord(
            partition_id=0,
            topic_id=ORDERS,
            replicas=(3, 2, 1),
            removing_replicas=(1,),
            adding_replicas=(3,),
        ),
    )
    assert result.response == AlterPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        allow_replication_factor_change=True,
        error_code=ErrorCode.none,
        error_message=None,
        responses=(
            ReassignableTopicResponse(
                name="orders",
                partitions=(
                    ReassignablePartitionResponse(
                        partition_index=0, error_code=ErrorCode.none, error_message=None
                    ),
                ),
            ),
        ),
    )


def test_what_goes_on_is_listed(cluster):
    cluster.apply(alter(cluster, [(1, (2, 3))]))
    expected = ListPartitionReassignmentsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        error_message=None,
        topics=(
            OngoingTopicReassignment(
                name="orders",
                partitions=(
                    OngoingPartitionReassignment(
                        partition_index=1,
                        replicas=(2, 3, 1),
                        adding_replicas=(3,),
                        removing_replicas=(1,),
                    ),
                ),
            ),
        ),
    )
    assert listed(cluster) == expected
    named = ListPartitionReassignmentsTopics(name="orders", partition_indexes=(0, 1, 7))
    assert listed(cluster, (named,)) == expected
    other = ListPartitionReassignmentsTopics(name="orders", partition_indexes=(0,))
    assert listed(cluster, (other,)).topics == ()
    assert listed(cluster, ()).topics == ()


def test_the_same_replicas_are_no_change(cluster):
    assert alter(cluster, [(0, (1, 2))]).records == ()


def test_a_partition_named_twice_is_reassigned_once(cluster):
    result = alter(cluster, [(0, (3, 2)), (0, (4, 2))])
    assert len(result.records) == 1
    codes = [one.error_code for one in result.response.responses[0].partitions]
    assert codes == [ErrorCode.none, ErrorCode.invalid_request]


def test_the_number_of_replicas_changes_only_if_it_may(cluster):
    result = alter(cluster, [(0, (1, 2, 3))], allow_replication_factor_change=False)
    assert refusal(result) is ErrorCode.invalid_replication_factor
    assert alter(cluster, [(0, (1, 2, 3))]).records != ()
    same = alter(cluster, [(0, (1, 3))], allow_replication_factor_change=False)
    assert same.records != ()


def test_who_was_to_be_added_and_is_not_any_more_is_dropped_at_once(cluster):
    cluster.apply(alter(cluster, [(0, (3, 2))]))
    assert alter(cluster, [(0, (4, 2))]).records == (
        PartitionChangeRecord(
            partition_id=0, topic_id=ORDERS, leader=1, replicas=(4, 2, 1), adding_replicas=(4,)
        ),
    )


def test_a_cancelled_reassignment_gives_the_replicas_back(cluster):
    cluster.apply(alter(cluster, [(0, (3, 4))]))
    cluster.apply(alter(cluster, [(0, None)]))
    partition = cluster.image.partition("orders", 0)
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
def test_a_wrong_reassignment_is_refused(cluster, name, target, code):
    assert refusal(alter(cluster, [target], name=name)) is code
