from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from kio.schema.broker_heartbeat.v2.response import BrokerHeartbeatResponse
from kio.schema.broker_registration.v4.response import BrokerRegistrationResponse
from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.static.primitive import i8, i16, i32, i64, u16
from tests.controller.cluster import Cluster, answered
from tests.controller.test_in_sync import alter, answer
from tests.controller.test_topics import creation, topic

from ottla.controller import brokers
from ottla.controller.features import supported_features
from ottla.controller.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.machine.result import Result
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import NO_THROTTLE

ORDERS = UUID(int=1)


def with_orders(brokers: int = 2, replication: int = 2) -> Cluster:
    cluster = Cluster(brokers=brokers)
    cluster.call(creation(topic("orders", 1, replication)))
    cluster.records_before = len(cluster.records)
    return cluster


def new_records(cluster: Cluster) -> list[BrokerRegistrationChangeRecord | PartitionChangeRecord]:
    return cluster.records[cluster.records_before :]


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=i32(0), topic_id=ORDERS, **fields)


def orders(cluster: Cluster) -> Iterable[PartitionRecord]:
    return cluster.image.topics["orders"].partitions.values()


def in_sync_count(cluster: Cluster, broker_id: int) -> int:
    return sum(broker_id in partition.isr for partition in orders(cluster))


def leaderless_count(cluster: Cluster) -> int:
    return sum(partition.leader == -1 for partition in orders(cluster))


def test_a_broker_whose_process_ended_is_fenced_at_once() -> None:
    cluster = with_orders()
    epoch = cluster.image.brokers[1].broker_epoch
    cluster.apply(cluster.machine.brokers.end_broker(1, epoch, cluster.now_ms))
    assert cluster.image.brokers[1].fenced
    assert [partition.leader for partition in orders(cluster)] == [2]
    records = len(cluster.records)
    cluster.apply(cluster.machine.brokers.end_broker(1, epoch, cluster.now_ms))
    cluster.advance(10_000)
    assert not any(
        isinstance(record, BrokerRegistrationChangeRecord) and record.broker_id == 1
        for record in cluster.records[records:]
    )


def test_a_broker_that_is_back_is_not_fenced_for_what_ended_before() -> None:
    cluster = with_orders()
    epoch = cluster.image.brokers[1].broker_epoch
    cluster.apply(cluster.machine.brokers.end_broker(1, epoch - 1, cluster.now_ms))
    cluster.apply(cluster.machine.brokers.end_broker(7, epoch, cluster.now_ms))
    assert new_records(cluster) == []
    assert not cluster.image.brokers[1].fenced


def test_a_broker_registers_fenced_with_the_offset_as_its_epoch() -> None:
    cluster = Cluster(brokers=0)
    cluster.records = [None] * 7
    response = cluster.register(1, rack="r")
    assert response == BrokerRegistrationResponse(
        throttle_time=NO_THROTTLE, error_code=ErrorCode.none, broker_epoch=i64(7)
    )
    assert cluster.records[7:] == [
        RegisterBrokerRecord(
            broker_id=BrokerId(1),
            incarnation_id=UUID(int=101),
            broker_epoch=i64(7),
            end_points=(BrokerEndpoint(name="PLAINTEXT", host="localhost", port=u16(9091)),),
            rack="r",
            fenced=True,
        )
    ]


def test_a_heartbeat_unfences_a_broker_that_has_caught_up() -> None:
    cluster = Cluster(brokers=0)
    cluster.records = [None] * 7
    cluster.register(1)
    behind = cluster.heartbeat(1, current_metadata_offset=6)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    result = cluster.heartbeat_result(1, current_metadata_offset=7)
    assert result.records == (
        BrokerRegistrationChangeRecord(broker_id=BrokerId(1), broker_epoch=i64(7), fenced=UNFENCE),
    )
    assert result.response == BrokerHeartbeatResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        is_caught_up=True,
        is_fenced=False,
        should_shut_down=False,
    )
    cluster.apply(result)
    assert cluster.heartbeat_result(1).records == ()


def test_a_heartbeat_extends_the_session() -> None:
    cluster = Cluster()
    cluster.now_ms = 500
    cluster.heartbeat(1)
    assert cluster.timers.deadlines["broker-session-1"][0] == 2_000


def test_an_expired_session_moves_leaders_and_shrinks_the_in_sync_sets() -> None:
    cluster = with_orders()
    cluster.expire_session(1)
    assert new_records(cluster) == [
        BrokerRegistrationChangeRecord(
            broker_id=BrokerId(1), broker_epoch=cluster.image.brokers[1].broker_epoch, fenced=FENCE
        ),
        change(isr=(2,), leader=2),
    ]


def test_the_last_in_sync_replica_is_eligible_and_leads_again_when_it_is_back() -> None:
    cluster = with_orders(brokers=1, replication=1)
    cluster.expire_session(1)
    assert new_records(cluster)[1:] == [
        change(isr=(), leader=-1, eligible_leader_replicas=(1,), last_known_elr=(1,))
    ]
    cluster.heartbeat(1)
    partition = cluster.partition("orders", 0)
    assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2)


def test_a_follower_that_fails_leaves_the_leader_epoch_alone() -> None:
    cluster = with_orders()
    cluster.expire_session(2)
    assert new_records(cluster)[1:] == [change(isr=(1,))]


def test_a_broker_loses_many_partitions_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "PARTITIONS_PER_STEP", 2)
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("orders", 5, 2)))
    cluster.expire_session(1)
    assert in_sync_count(cluster, 1) == 3
    assert not cluster.image.brokers[1].fenced
    partition = next(state for state in orders(cluster) if state.isr == (2,))
    refused = alter(cluster, (1, 2), broker_id=2, index=partition.partition_id)
    assert answer(refused).error_code is ErrorCode.ineligible_replica
    cluster.advance(0)
    assert in_sync_count(cluster, 1) == 0
    assert cluster.image.brokers[1].fenced


def test_a_broker_is_not_fenced_while_its_heartbeat_is_not_answered() -> None:
    cluster = Cluster()
    unanswered = cluster.heartbeat_result(1)
    cluster.now_ms = 1_500
    cluster.expire_session(1)
    assert not cluster.image.brokers[1].fenced
    cluster.apply(unanswered)
    for cluster.now_ms in (3_000, 4_500):
        cluster.expire_session(1)
    assert cluster.image.brokers[1].fenced


def test_a_heartbeat_ends_a_fencing_that_is_not_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "PARTITIONS_PER_STEP", 2)
    cluster = Cluster(brokers=2)
    cluster.call(creation(topic("orders", 5, 2)))
    cluster.expire_session(1)
    assert not cluster.heartbeat(1).is_fenced
    cluster.advance(0)
    assert not cluster.image.brokers[1].fenced


def test_many_partitions_get_a_leader_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "PARTITIONS_PER_STEP", 2)
    cluster = Cluster(brokers=1)
    cluster.call(creation(topic("orders", 5, 1)))
    cluster.expire_session(1)
    cluster.advance(0)
    assert leaderless_count(cluster) == 5
    cluster.heartbeat(1)
    assert leaderless_count(cluster) == 3
    cluster.advance(0)
    assert leaderless_count(cluster) == 0


def test_a_session_that_expires_twice_changes_nothing() -> None:
    cluster = with_orders()
    _, expiry = cluster.timers.deadlines["broker-session-2"]
    cluster.apply(expiry(0))
    assert expiry(0).records == ()


def test_an_old_epoch_is_refused() -> None:
    cluster = Cluster()
    with pytest.raises(ApiError) as caught:
        cluster.heartbeat_result(1, broker_epoch=99)
    assert caught.value.code is ErrorCode.stale_broker_epoch


def test_an_unknown_broker_is_refused() -> None:
    cluster = Cluster()
    with pytest.raises(ApiError) as caught:
        cluster.heartbeat_result(9)
    assert caught.value.code is ErrorCode.broker_id_not_registered


def test_a_broker_of_another_cluster_is_refused() -> None:
    with pytest.raises(ApiError) as caught:
        Cluster().register(2, cluster_id="other")
    assert caught.value.code is ErrorCode.inconsistent_cluster_id


def test_a_second_broker_with_the_id_of_a_living_one_is_refused() -> None:
    cluster = Cluster()
    with pytest.raises(ApiError) as caught:
        cluster.register(1, incarnation=5)
    assert caught.value.code is ErrorCode.duplicate_broker_registration
    cluster.expire_session(1)
    assert cluster.register(1, incarnation=5).error_code is ErrorCode.none


def test_the_same_incarnation_registers_again_with_its_epoch() -> None:
    cluster = Cluster()
    epoch = cluster.image.brokers[1].broker_epoch
    assert cluster.register(1).broker_epoch == epoch


def test_amending_a_registration_leaves_the_broker_active() -> None:
    cluster = with_orders()
    cluster.register(1, rack="new")
    assert not cluster.image.brokers[1].fenced
    assert cluster.image.brokers[1].rack == "new"
    assert cluster.partition("orders", 0).leader == 1


def test_a_restarted_broker_registers_at_once_with_a_restarted_controller() -> None:
    cluster = with_orders()
    cluster.reload()
    assert {"broker-session-1", "broker-session-2"} <= set(cluster.timers.deadlines)
    epoch = len(cluster.records)
    assert cluster.register(1, incarnation=5).broker_epoch == epoch
    assert cluster.image.brokers[1].fenced
    assert cluster.partition("orders", 0).leader == 2


def test_a_broker_shuts_down_when_the_others_know_that_it_leads_nothing() -> None:
    cluster = with_orders()
    epoch = cluster.image.brokers[1].broker_epoch
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    assert new_records(cluster) == [
        BrokerRegistrationChangeRecord(
            broker_id=BrokerId(1), broker_epoch=epoch, in_controlled_shutdown=i8(1)
        ),
        change(isr=(2,), leader=2),
    ]
    assert not cluster.heartbeat(1, want_shut_down=True).should_shut_down
    cluster.heartbeat(2)
    result = cluster.heartbeat_result(1, want_shut_down=True)
    assert answered(result).should_shut_down
    assert result.records == (
        BrokerRegistrationChangeRecord(broker_id=BrokerId(1), broker_epoch=epoch, fenced=FENCE),
    )


def test_a_broker_must_know_the_features_of_the_cluster() -> None:
    cluster = Cluster()
    cluster.replay(FeatureLevelRecord(name="transaction.version", feature_level=i16(1)))
    with pytest.raises(ApiError) as caught:
        cluster.register(2)
    assert caught.value.code is ErrorCode.unsupported_version
    assert cluster.register(2, features=supported_features()).error_code is ErrorCode.none


def unregister(cluster: Cluster, broker_id: int) -> Result[Any]:
    return cluster.result_of(UnregisterBrokerRequest(broker_id=BrokerId(broker_id)))


def test_a_broker_that_stopped_is_unregistered() -> None:
    cluster = with_orders()
    cluster.expire_session(1)
    epoch = cluster.image.brokers[1].broker_epoch
    assert unregister(cluster, 1).records == (
        UnregisterBrokerRecord(broker_id=BrokerId(1), broker_epoch=epoch),
    )
    cluster.apply(unregister(cluster, 1))
    with pytest.raises(ApiError) as caught:
        unregister(cluster, 1)
    assert caught.value.code is ErrorCode.broker_id_not_registered


def test_a_running_broker_is_not_unregistered() -> None:
    with pytest.raises(ApiError) as caught:
        unregister(with_orders(), 1)
    assert caught.value.code is ErrorCode.invalid_request
