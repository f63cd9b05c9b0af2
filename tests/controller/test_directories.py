"""A broker with several log directories reports what is in which, and loses one of them."""

from uuid import UUID

import pytest
from kio.schema.assign_replicas_to_dirs.v0 import request as assign
from kio.schema.types import BrokerId
from kio.static.primitive import i32
from tests.controller.cluster import Cluster
from tests.controller.test_in_sync import alter, answer
from tests.controller.test_topics import creation, topic

from ottla.controller.directories import LOST, UNASSIGNED
from ottla.controller.records import BrokerRegistrationChangeRecord, PartitionRecord
from ottla.protocol.errors import ErrorCode

A, B, C = (UUID(int=number) for number in (11, 12, 13))


def cluster_of_three() -> Cluster:
    """Broker 1 has the directories A and B; the topic has two partitions, both led by it."""
    cluster = Cluster(brokers=0)
    for broker_id in (1, 2, 3):
        cluster.register(broker_id, log_dirs=(11, 12) if broker_id == 1 else (20 + broker_id,))
        cluster.heartbeat(broker_id)
    cluster.call(creation(topic("orders", assignments={0: (1, 2), 1: (1, 3)})))
    return cluster


def partition(cluster: Cluster, index: int = 0) -> PartitionRecord:
    return cluster.image.topics["orders"].partitions[index]


def directories(cluster: Cluster) -> tuple[UUID | None, ...]:
    return cluster.image.brokers[1].log_dirs


def assigned(
    cluster: Cluster, *assignments: tuple[UUID, int], broker_id: int = 1, epoch: None = None
) -> list[ErrorCode]:
    """Assignments are pairs of directory and partition index; returns the error of each."""
    broker = cluster.image.brokers[broker_id]
    request = assign.AssignReplicasToDirsRequest(
        broker_id=BrokerId(broker_id),
        broker_epoch=broker.broker_epoch if epoch is None else epoch,
        directories=tuple(
            assign.DirectoryData(
                id_=directory,
                topics=(
                    assign.TopicData(
                        topic_id=cluster.image.topics["orders"].topic_id,
                        partitions=(assign.PartitionData(partition_index=i32(index)),),
                    ),
                ),
            )
            for directory, index in assignments
        ),
    )
    response = cluster.call(request)
    return [directory.topics[0].partitions[0].error_code for directory in response.directories]


def test_a_broker_says_where_its_replicas_are() -> None:
    cluster = cluster_of_three()
    assert assigned(cluster, (A, 0), (B, 1)) == [ErrorCode.none, ErrorCode.none]
    assert partition(cluster, 0).directories == (A, UNASSIGNED)
    assert partition(cluster, 1).directories == (B, UNASSIGNED)
    epoch = partition(cluster).partition_epoch
    assert assigned(cluster, (A, 0)) == [ErrorCode.none]
    assert partition(cluster).partition_epoch == epoch  # Nothing new.


def test_what_a_broker_does_not_have_is_refused() -> None:
    cluster = cluster_of_three()
    assert assigned(cluster, (A, 1), broker_id=2) == [ErrorCode.not_leader_or_follower]
    assert assigned(cluster, (A, 7)) == [ErrorCode.unknown_topic_or_partition]
    assert assigned(cluster, (A, 0), (B, 0)) == [ErrorCode.none, ErrorCode.invalid_request]


def test_leaders_leave_a_directory_that_failed_and_the_others_stay() -> None:
    cluster = cluster_of_three()
    assigned(cluster, (A, 0), (B, 1))
    result = cluster.heartbeat_result(1, offline_log_dirs=(A,))
    assert result.records[0] == BrokerRegistrationChangeRecord(
        broker_id=BrokerId(1), broker_epoch=cluster.image.brokers[1].broker_epoch, log_dirs=(B,)
    )
    response = cluster.apply(result)
    assert not response.is_fenced
    assert (partition(cluster, 0).leader, partition(cluster, 0).isr) == (2, (2,))
    assert (partition(cluster, 1).leader, partition(cluster, 1).isr) == (1, (1, 3))
    assert cluster.heartbeat_result(1, offline_log_dirs=(A,)).records == ()  # Reported again.


def test_many_partitions_leave_a_directory_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.controller.brokers.PARTITIONS_PER_STEP", 1)
    cluster = cluster_of_three()
    assigned(cluster, (A, 0), (A, 1))
    assert len(cluster.heartbeat_result(1, offline_log_dirs=(A,)).records) == 1
    cluster.heartbeat(1, offline_log_dirs=(A,))
    assert directories(cluster) == (A, B)
    cluster.heartbeat(1, offline_log_dirs=(A,))
    assert directories(cluster) == (B,)
    assert {partition(cluster, index).leader for index in (0, 1)} == {2, 3}


def test_a_broker_without_any_directory_is_fenced() -> None:
    cluster = cluster_of_three()
    assert cluster.heartbeat(1, offline_log_dirs=(A, B)).is_fenced
    assert cluster.image.brokers[1].fenced


def test_the_only_replica_has_no_leader_until_its_directory_is_back() -> None:
    cluster = cluster_of_three()
    assigned(cluster, (A, 0))
    cluster.expire_session(2)
    cluster.heartbeat(1, offline_log_dirs=(A,))
    assert partition(cluster).leader == -1
    epoch = cluster.image.brokers[1].broker_epoch
    cluster.expire_session(1)
    cluster.register(1, incarnation=800, log_dirs=(12,))  # It restarts without the disk.
    cluster.heartbeat(1)
    assert partition(cluster).leader == -1
    cluster.expire_session(1)
    cluster.register(1, incarnation=801, log_dirs=(11, 12), previous_broker_epoch=epoch)
    cluster.heartbeat(1)
    assert partition(cluster).leader == 1


def test_the_only_replica_is_not_replaced_by_an_empty_one() -> None:
    cluster = cluster_of_three()
    assigned(cluster, (A, 0))
    cluster.expire_session(2)
    cluster.heartbeat(1, offline_log_dirs=(A,))
    cluster.expire_session(1)
    cluster.register(1, incarnation=800, log_dirs=(12, 13))
    cluster.heartbeat(1)
    assert assigned(cluster, (C, 0)) == [ErrorCode.none]
    assert partition(cluster).leader == -1
    assert not partition(cluster).eligible_leader_replicas
    cluster.register(2, incarnation=802, log_dirs=(22,))
    cluster.heartbeat(2)
    assert partition(cluster).leader == -1  # It was not in sync when the disk failed.


def test_a_replica_on_a_replaced_disk_is_no_leader_and_joins_when_it_has_said_where_it_is() -> None:
    cluster = cluster_of_three()
    assigned(cluster, (A, 0), (B, 1))
    epoch = cluster.image.brokers[1].broker_epoch
    cluster.expire_session(1)
    cluster.register(1, incarnation=800, log_dirs=(12, 13), previous_broker_epoch=epoch)
    cluster.heartbeat(1)
    assert cluster.machine._leadership.has_replica(partition(cluster, 0), 1) is False
    assert cluster.machine._leadership.has_replica(partition(cluster, 1), 1) is True
    assigned(cluster, (C, 0))
    assert cluster.machine._leadership.has_replica(partition(cluster, 0), 1) is True


def test_a_replica_whose_directory_failed_before_it_was_told_leads_no_longer() -> None:
    cluster = cluster_of_three()
    cluster.heartbeat(1, offline_log_dirs=(A,))
    assert partition(cluster).leader == 1
    assert assigned(cluster, (A, 0)) == [ErrorCode.none]
    assert (partition(cluster).leader, partition(cluster).isr) == (2, (2,))
    assert partition(cluster).directories == (A, UNASSIGNED)


def test_a_damaged_replica_gives_up_its_leadership_and_is_neither_in_sync_nor_eligible() -> None:
    cluster = cluster_of_three()
    assert assigned(cluster, (LOST, 0)) == [ErrorCode.none]
    state = partition(cluster)
    assert state.leader == 2
    assert state.isr == (2,)
    assert not state.eligible_leader_replicas
    assert state.directories == (LOST, UNASSIGNED)
    assert assigned(cluster, (A, 0)) == [ErrorCode.none]
    state = partition(cluster)
    assert state.isr == (2,)
    assert state.directories == (A, UNASSIGNED)


def test_a_damaged_replica_stays_while_nobody_else_has_everything() -> None:
    cluster = cluster_of_three()
    assert assigned(cluster, (LOST, 0)) == [ErrorCode.none]
    before = partition(cluster)
    refused = assigned(cluster, (LOST, 0), broker_id=2)
    assert refused == [ErrorCode.eligible_leaders_not_available]
    assert partition(cluster) == before


def test_replicas_in_a_full_directory_are_left_to_others() -> None:
    cluster = cluster_of_three()
    assigned(cluster, (A, 0), (B, 1))
    cluster.heartbeat(1, cordoned_log_dirs=(A,))
    assert (partition(cluster, 0).leader, partition(cluster, 0).isr) == (2, (2,))
    assert (partition(cluster, 1).leader, partition(cluster, 1).isr) == (1, (1, 3))
    assert not cluster.image.brokers[1].fenced
    assert cluster.heartbeat_result(1, cordoned_log_dirs=(A,)).records == ()  # Reported again.


def test_a_broker_whose_only_directory_is_full_need_not_have_named_it() -> None:
    cluster = cluster_of_three()
    cluster.heartbeat(2, cordoned_log_dirs=(UUID(int=22),))
    assert (partition(cluster, 0).leader, partition(cluster, 0).isr) == (1, (1,))
    assert partition(cluster, 1).isr == (1, 3)


def test_nobody_joins_an_in_sync_set_or_leads_by_preference_without_room() -> None:
    cluster = cluster_of_three()
    cluster.heartbeat(1, cordoned_log_dirs=(A, B))
    assert partition(cluster).isr == (2,)
    refused = alter(cluster, (1, 2), broker_id=2)
    assert answer(refused).error_code is ErrorCode.ineligible_replica
    cluster.heartbeat(1)
    cluster.apply(alter(cluster, (1, 2), broker_id=2))
    assert partition(cluster).isr == (1, 2)


def test_the_last_replica_in_sync_leads_on_without_room() -> None:
    cluster = cluster_of_three()
    cluster.heartbeat(1, cordoned_log_dirs=(A, B))
    cluster.heartbeat(2, cordoned_log_dirs=(UUID(int=22),))
    assert (partition(cluster).leader, partition(cluster).isr) == (2, (2,))


def test_a_new_life_of_a_broker_has_room_until_it_says_otherwise() -> None:
    cluster = cluster_of_three()
    cluster.heartbeat(1, cordoned_log_dirs=(A, B))
    cluster.expire_session(1)
    cluster.register(1, incarnation=7, log_dirs=(11, 12))
    cluster.heartbeat(1)
    cluster.apply(alter(cluster, (1, 2), broker_id=2))
    assert partition(cluster).isr == (1, 2)
