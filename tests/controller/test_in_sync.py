from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_partition.v3 import response
from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.types import BrokerId
from kio.static.primitive import i8, i32, i64
from tests.controller.cluster import Cluster, answered
from tests.controller.test_topics import creation, topic

from ottla.controller.records import PartitionChangeRecord
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode

ORDERS = UUID(int=1)


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster(brokers=3)
    cluster.call(creation(topic("orders", 1, 3)))
    return cluster


def alteration(
    cluster: Cluster,
    isr: tuple[int | tuple[int, int], ...],
    broker_id: int = 1,
    topic_id: UUID | None = ORDERS,
    index: int = 0,
    **fields: Any,
) -> AlterPartitionRequest:
    """A request with the current epochs by default; brokers in `isr` may have an epoch."""
    partition = cluster.image.partition("orders", index) or cluster.partition("orders", 0)
    states = (member if isinstance(member, tuple) else (member, -1) for member in isr)
    present = PartitionData(
        partition_index=i32(index),
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        new_isr_with_epochs=tuple(
            BrokerState(broker_id=BrokerId(broker), broker_epoch=i64(epoch))
            for broker, epoch in states
        ),
    )
    return AlterPartitionRequest(
        broker_id=BrokerId(broker_id),
        broker_epoch=cluster.image.brokers[broker_id].broker_epoch,
        topics=(TopicData(topic_id=topic_id, partitions=(replace(present, **fields),)),),
    )


def alter(cluster: Cluster, isr: tuple[int | tuple[int, int], ...], **fields: Any) -> Result[Any]:
    return cluster.result_of(alteration(cluster, isr, **fields))


def answer(result: Result[Any]) -> response.PartitionData:
    (topic_data,) = answered(result).topics
    (partition,) = topic_data.partitions
    assert isinstance(partition, response.PartitionData)
    return partition


def test_the_leader_shrinks_the_in_sync_set(cluster: Cluster) -> None:
    result = alter(cluster, (1, 2))
    assert result.records == (
        PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, isr=(BrokerId(1), BrokerId(2))),
    )
    got = answer(result)
    assert (got.error_code, got.leader_id, got.leader_epoch) == (ErrorCode.none, 1, 0)
    assert (got.isr, got.partition_epoch) == ((1, 2), 1)


def test_the_leader_expands_the_in_sync_set_with_the_epochs_that_it_saw(cluster: Cluster) -> None:
    cluster.apply(alter(cluster, (1,)))
    epoch = cluster.image.brokers[3].broker_epoch
    cluster.apply(alter(cluster, (1, (3, epoch))))
    assert cluster.partition("orders", 0).isr == (1, 3)


def test_a_repeated_request_is_refused_by_the_partition_epoch(cluster: Cluster) -> None:
    request = alteration(cluster, (1, 2))
    cluster.call(request)
    again = cluster.result_of(request)
    assert answer(again).error_code is ErrorCode.invalid_update_version
    assert again.records == ()


def test_what_is_already_so_is_no_record(cluster: Cluster) -> None:
    result = alter(cluster, (1, 2, 3))
    assert result.records == ()
    assert answer(result).error_code is ErrorCode.none


def test_a_partition_named_twice_is_altered_once(cluster: Cluster) -> None:
    request = alteration(cluster, (1, 2))
    (asked,) = request.topics
    twice = AlterPartitionRequest(
        broker_id=BrokerId(1), broker_epoch=request.broker_epoch, topics=(asked, asked)
    )
    result = cluster.result_of(twice)
    assert len(result.records) == 1
    codes = [topic_data.partitions[0].error_code for topic_data in answered(result).topics]
    assert codes == [ErrorCode.none, ErrorCode.invalid_request]


def test_the_end_of_an_unclean_recovery_is_recorded(cluster: Cluster) -> None:
    cluster.replay(
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=ORDERS,
            isr=(BrokerId(1),),
            leader=BrokerId(1),
            leader_recovery_state=i8(1),
        )
    )
    refused = alter(cluster, (1, 2), leader_recovery_state=1)
    assert answer(refused).error_code is ErrorCode.invalid_request
    result = alter(cluster, (1, 2), leader_recovery_state=0)
    assert result.records == (
        PartitionChangeRecord(
            partition_id=i32(0),
            topic_id=ORDERS,
            isr=(BrokerId(1), BrokerId(2)),
            leader_recovery_state=i8(0),
        ),
    )


@pytest.mark.parametrize(
    ("isr", "fields", "code"),
    [
        ((1,), {"topic_id": UUID(int=9)}, ErrorCode.unknown_topic_id),
        ((1,), {"topic_id": None}, ErrorCode.unknown_topic_id),
        ((1,), {"index": 5}, ErrorCode.unknown_topic_or_partition),
        ((1,), {"leader_epoch": 1}, ErrorCode.not_controller),
        ((1,), {"partition_epoch": 1}, ErrorCode.not_controller),
        ((1,), {"leader_epoch": -1}, ErrorCode.fenced_leader_epoch),
        ((1,), {"partition_epoch": -1}, ErrorCode.invalid_update_version),
        ((2,), {"broker_id": 2}, ErrorCode.invalid_request),
        ((2, 3), {}, ErrorCode.invalid_request),
        ((1, 1), {}, ErrorCode.invalid_request),
        ((1, 9), {}, ErrorCode.invalid_request),
        ((), {}, ErrorCode.invalid_request),
        ((1,), {"leader_recovery_state": 1}, ErrorCode.invalid_request),
        ((1,), {"leader_recovery_state": 7}, ErrorCode.invalid_request),
        ((1, (2, 99)), {}, ErrorCode.ineligible_replica),
    ],
)
def test_a_wrong_alteration_is_refused(
    cluster: Cluster,
    isr: tuple[int | tuple[int, int], ...],
    fields: dict[str, UUID | int | None],
    code: ErrorCode,
) -> None:
    result = alter(cluster, isr, **fields)
    assert answer(result).error_code is code
    assert result.records == ()


def test_a_fenced_broker_is_not_in_sync(cluster: Cluster) -> None:
    cluster.expire_session(3)
    assert answer(alter(cluster, (1, 2, 3))).error_code is ErrorCode.ineligible_replica


def test_a_broker_in_controlled_shutdown_is_not_in_sync(cluster: Cluster) -> None:
    cluster.heartbeat(2, want_shut_down=True)
    assert answer(alter(cluster, (1, 2))).error_code is ErrorCode.ineligible_replica


def test_a_leader_of_an_earlier_life_is_refused(cluster: Cluster) -> None:
    request = alteration(cluster, (1, 2))
    cluster.expire_session(1)
    cluster.register(1, incarnation=5)
    with pytest.raises(ApiError) as caught:
        cluster.result_of(request)
    assert caught.value.code is ErrorCode.stale_broker_epoch
