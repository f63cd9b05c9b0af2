from typing import Any
from uuid import UUID

import pytest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.elect_leaders.v2.response import (
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32
from tests.controller.cluster import Cluster, answered
from tests.controller.test_topics import creation, topic

from ottla.controller.records import PartitionChangeRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

ORDERS = UUID(int=1)
PREFERRED, UNCLEAN = 0, 1


def moved_leaders(partitions: int = 1, **static: Any) -> Cluster:
    """Broker 1 is in sync everywhere again, and 2 leads."""
    cluster = Cluster(brokers=2, **static)
    assignments = dict.fromkeys(range(partitions), (1, 2))
    cluster.call(creation(topic("orders", assignments=assignments)))
    for index in range(partitions):
        cluster.replay(
            PartitionChangeRecord(partition_id=i32(index), topic_id=ORDERS, leader=BrokerId(2))
        )
    return cluster


def elect(cluster: Cluster, kind: int, *partitions: tuple[str, int]) -> Result[Any]:
    named = tuple(
        TopicPartitions(topic=TopicName(name), partitions=(i32(index),))
        for name, index in partitions
    )
    request = ElectLeadersRequest(election_type=i8(kind), topic_partitions=named or None)
    return cluster.result_of(request)


def codes(result: Result[Any]) -> list[tuple[str, int, ErrorCode]]:
    return [
        (each.topic, partition.partition_id, partition.error_code)
        for each in answered(result).replica_election_results
        for partition in each.partition_result
    ]


def led_by(cluster: Cluster, broker_id: int) -> list[int]:
    partitions = cluster.image.topics["orders"].partitions.values()
    return [partition.partition_id for partition in partitions if partition.leader == broker_id]


def test_the_preferred_leader_is_elected_with_exact_records_and_response() -> None:
    result = elect(moved_leaders(), PREFERRED, ("orders", 0))
    assert result.records == (
        PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, leader=BrokerId(1)),
    )
    assert result.response == ElectLeadersResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        replica_election_results=(
            ReplicaElectionResult(
                topic=TopicName("orders"),
                partition_result=(
                    PartitionResult(
                        partition_id=i32(0), error_code=ErrorCode.none, error_message=None
                    ),
                ),
            ),
        ),
    )


def test_everywhere_means_where_it_is_needed() -> None:
    cluster = moved_leaders(3)
    cluster.apply(elect(cluster, PREFERRED, ("orders", 1)))
    result = elect(cluster, PREFERRED)
    assert codes(result) == [("orders", 0, ErrorCode.none), ("orders", 2, ErrorCode.none)]
    records: tuple[Any, ...] = result.records
    assert [record.partition_id for record in records] == [0, 2]


def test_a_partition_named_twice_is_elected_once() -> None:
    result = elect(moved_leaders(), PREFERRED, ("orders", 0), ("orders", 0))
    assert len(result.records) == 1


@pytest.mark.parametrize(
    ("kind", "partition", "code"),
    [
        (PREFERRED, ("nothing", 0), ErrorCode.unknown_topic_or_partition),
        (PREFERRED, ("orders", 9), ErrorCode.unknown_topic_or_partition),
        (UNCLEAN, ("orders", 0), ErrorCode.election_not_needed),
    ],
)
def test_an_election_that_is_refused(
    kind: int, partition: tuple[str, int], code: ErrorCode
) -> None:
    result = elect(moved_leaders(), kind, partition)
    assert codes(result) == [(*partition, code)]
    assert result.records == ()


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        (("other", 0), "No such topic as other"),
        (("orders", 7), "No such partition as orders-7"),
    ],
)
def test_an_election_for_what_is_not_there_says_whether_topic_or_partition_is_missing(
    partition: tuple[str, int], message: str
) -> None:
    result = elect(moved_leaders(), PREFERRED, partition)
    (refused,) = answered(result).replica_election_results[0].partition_result
    assert refused.error_message == message


def test_an_election_that_nobody_can_win() -> None:
    cluster = moved_leaders()
    cluster.expire_session(1)
    result = elect(cluster, PREFERRED, ("orders", 0))
    assert codes(result) == [("orders", 0, ErrorCode.preferred_leader_not_available)]
    (refused,) = answered(result).replica_election_results[0].partition_result
    assert refused.error_message == (
        "The preferred leader was not available. Broker 1 is down or out of sync."
    )
    cluster.expire_session(2)
    result = elect(cluster, UNCLEAN, ("orders", 0))
    assert codes(result) == [("orders", 0, ErrorCode.eligible_leaders_not_available)]


def test_an_unknown_kind_of_election_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        elect(moved_leaders(), 7)
    assert caught.value.code is ErrorCode.invalid_request
