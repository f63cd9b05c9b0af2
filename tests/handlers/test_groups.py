"""The group APIs on a single broker: one member, its offsets, and its description."""

import dataclasses
from uuid import UUID

import pytest
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.delete_records.v2.request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.list_groups.v5.request import ListGroupsRequest
from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.sync_group.v5.request import SyncGroupRequest, SyncGroupRequestAssignment
from kio.schema.types import BrokerId
from tests.controller.test_topics import creation, topic
from tests.kits.world import until

from ottla.handlers.consumer_group_describe import handle as handle_consumer_group_describe
from ottla.handlers.consumer_group_heartbeat import handle as handle_consumer_group_heartbeat
from ottla.handlers.create_topics import handle as handle_create_topics
from ottla.handlers.delete_groups import handle as handle_delete_groups
from ottla.handlers.delete_records import handle as handle_delete_records
from ottla.handlers.describe_groups import handle as handle_describe_groups
from ottla.handlers.find_coordinator import error_response
from ottla.handlers.find_coordinator import handle as handle_find_coordinator
from ottla.handlers.heartbeat import handle as handle_heartbeat
from ottla.handlers.join_group import handle as handle_join_group
from ottla.handlers.leave_group import handle as handle_leave_group
from ottla.handlers.list_groups import handle as handle_list_groups
from ottla.handlers.offset_delete import handle as handle_offset_delete
from ottla.handlers.offset_fetch import handle as handle_offset_fetch
from ottla.handlers.sync_group import handle as handle_sync_group
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from ottla.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.protocol.times import milliseconds
from ottla.protocol.topics import CONSUMER_OFFSETS_TOPIC

GROUPS = 0
OFFSET_COMMIT = 8
ALL_GROUPS = ListGroupsRequest()


@pytest.fixture
def node(start_node):
    node = start_node(offsets_topic_num_partitions="3")
    node.call(handle_create_topics, creation(topic("orders", 2, 1)))
    return node


@pytest.fixture
def coordinator(node):
    """The node, once the coordinators are loaded."""
    find(node, "g")
    node.run(until(lambda: is_loaded(node)))
    return node


def is_loaded(node):
    try:
        return len([runtime.machine for runtime in node.broker.groups.all()]) == 3
    except ApiError:
        return False


def find(node, *keys, key_type=GROUPS, **options):
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    return node.call(handle_find_coordinator, request, **options).coordinators


def join(node, member_id="", group="g"):
    request = JoinGroupRequest(
        group_id=group,
        session_timeout=milliseconds(10_000),
        rebalance_timeout=milliseconds(10_000),
        member_id=member_id,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"m"),),
    )
    return node.call(handle_join_group, request, api_version=9)


def sync(node, member_id, generation):
    assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all of it")
    request = SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=(assignment,),
    )
    return node.call(handle_sync_group, request)


def become_member(node):
    """The member id and generation of the only member."""
    refused = join(node)
    assert refused.error_code is ErrorCode.member_id_required
    joined = join(node, refused.member_id)
    assert joined.error_code is ErrorCode.none
    assert sync(node, joined.member_id, joined.generation_id).assignment == b"all of it"
    return joined.member_id, joined.generation_id


def commit(node, offset, *, name="orders", topic_id=None, member_id="", generation=-1):
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=(
            OffsetCommitRequestTopic(
                name=name,
                topic_id=topic_id,
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=1, committed_offset=offset, committed_metadata="note"
                    ),
                ),
            ),
        ),
    )
    response = node.ask(OFFSET_COMMIT, 10 if topic_id else 9, request)
    return response.topics[0].partitions[0].error_code


def committed(node, *groups):
    request = OffsetFetchRequest(
        groups=tuple(OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups)
    )
    response = node.call(handle_offset_fetch, request)
    return {
        group.group_id: {
            (topic_result.name, partition.partition_index): partition.committed_offset
            for topic_result in group.topics
            for partition in topic_result.partitions
        }
        for group in response.groups
    }


def test_the_first_question_creates_the_topic(node):
    (found,) = find(node, "g")
    assert (found.error_code, found.node_id) == (ErrorCode.none, 1)
    assert (found.host, found.port) == ("public", 9092)
    assert node.image.partition_count(CONSUMER_OFFSETS_TOPIC) == 3
    assert len(node.image.partition(CONSUMER_OFFSETS_TOPIC, 0).replicas) == 1
    assert node.image.topic_configs(CONSUMER_OFFSETS_TOPIC) == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
    }
    assert [group.key for group in find(node, "a", "b")] == ["a", "b"]


def test_segments_of_the_offsets_topic_are_as_large_as_a_topic_may_ask_for(start_node):
    node = start_node(offsets_topic_segment_bytes="1000")
    (found,) = find(node, "g")
    assert found.error_code is ErrorCode.none
    assert node.image.topic_configs(CONSUMER_OFFSETS_TOPIC)["segment.bytes"] == "1048576"


def test_the_coordinator_is_told_by_the_listener_that_the_client_uses(node):
    (found,) = find(node, "g", listener_name="INTERNAL")
    assert (found.host, found.port) == ("private", 9093)


def test_a_listener_that_the_coordinator_lacks_leads_nowhere(node):
    (found,) = find(node, "g", listener_name="OTHER")
    assert (found.error_code, found.node_id) == (ErrorCode.coordinator_not_available, -1)


def test_a_coordinator_that_does_not_serve_is_not_named(coordinator):
    (found,) = find(coordinator, "g")
    assert found.error_code is ErrorCode.none
    partition = coordinator.broker.groups.partition_of("g")
    coordinator.broker.groups.leadership_listener.on_resigning(
        coordinator.partition(CONSUMER_OFFSETS_TOPIC, partition)
    )
    (found,) = find(coordinator, "g")
    assert (found.error_code, found.node_id) == (ErrorCode.coordinator_not_available, -1)


def test_a_coordinator_elsewhere_is_asked_before_it_is_named(coordinator):
    partition = coordinator.broker.groups.partition_of("g")
    state = coordinator.image.partition(CONSUMER_OFFSETS_TOPIC, partition)
    coordinator.image.topics[CONSUMER_OFFSETS_TOPIC].partitions[partition] = dataclasses.replace(
        state, leader=BrokerId(2)
    )
    (found,) = find(coordinator, "g")
    assert (found.error_code, found.node_id) == (ErrorCode.coordinator_not_available, -1)


@pytest.mark.parametrize("key_type", [2, 9])
def test_other_coordinators_are_refused(node, key_type):
    with pytest.raises(ApiError) as refusal:
        find(node, "x", key_type=key_type)
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=("x",))
    (failed,) = error_response(request, refusal.value).coordinators
    assert (failed.error_code, failed.key) == (ErrorCode.invalid_request, "x")


def test_before_the_topic_is_there_nobody_coordinates(node):
    with pytest.raises(ApiError) as refusal:
        join(node)
    assert refusal.value.code is ErrorCode.not_coordinator
    request = OffsetFetchRequest(
        groups=(
            OffsetFetchRequestGroup(
                group_id="g",
                topics=(OffsetFetchRequestTopics(topic_id=UUID(int=1), partition_indexes=(1,)),),
            ),
        )
    )
    (group,) = node.call(handle_offset_fetch, request).groups
    assert group.error_code is ErrorCode.not_coordinator
    assert group.topics == ()
    (oldest,) = node.call(handle_offset_fetch, request, api_version=1).groups
    assert oldest.topics[0].partitions[0].error_code is ErrorCode.not_coordinator
    assert node.call(handle_list_groups, ALL_GROUPS).groups == ()
    (described,) = node.call(
        handle_describe_groups,
        DescribeGroupsRequest(groups=("g",), include_authorized_operations=False),
    ).groups
    assert described.error_code is ErrorCode.not_coordinator


def test_offsets_that_are_not_replicated_in_time_are_asked_for_again(coordinator, monkeypatch):
    """Java consumers before 3.9 give up for good on COORDINATOR_NOT_AVAILABLE, but only here."""

    def refuse(*_, **__):
        raise ApiError(ErrorCode.coordinator_not_available, "not replicated in time")

    monkeypatch.setattr("ottla.groups.coordinator.GroupMachine.fetch_offsets", refuse)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=None),))
    (group,) = coordinator.call(handle_offset_fetch, request).groups
    assert group.error_code is ErrorCode.not_coordinator


def test_the_life_of_a_member(coordinator):
    member_id, generation = become_member(coordinator)
    alive = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    assert coordinator.call(handle_heartbeat, alive).error_code is ErrorCode.none
    assert commit(coordinator, 5, member_id=member_id, generation=generation) is ErrorCode.none
    assert committed(coordinator, "g", "other") == {"g": {("orders", 1): 5}, "other": {}}
    late = commit(coordinator, 6, member_id=member_id, generation=generation + 1)
    assert late is ErrorCode.illegal_generation
    leaving = LeaveGroupRequest(group_id="g", members=(MemberIdentity(member_id=member_id),))
    (left,) = coordinator.call(handle_leave_group, leaving).members
    assert left.error_code is ErrorCode.none


def test_a_heartbeat_is_good_while_the_coordinator_is_loading(coordinator):
    member_id, generation = become_member(coordinator)
    coordinator.broker.groups.find("g").unload(ApiError(ErrorCode.not_coordinator))
    with pytest.raises(ApiError) as refusal:
        sync(coordinator, member_id, generation)
    assert refusal.value.code is ErrorCode.coordinator_load_in_progress
    alive = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member_id)
    assert coordinator.call(handle_heartbeat, alive).error_code is ErrorCode.none


def test_offsets_by_topic_id(coordinator):
    topic_id = coordinator.image.topic_id("orders")
    assert commit(coordinator, 7, name="", topic_id=topic_id) is ErrorCode.none
    assert committed(coordinator, "g") == {"g": {("orders", 1): 7}}
    unknown = commit(coordinator, 8, name="", topic_id=UUID(int=999))
    assert unknown is ErrorCode.unknown_topic_id


def test_what_admins_see(coordinator):
    member_id, _ = become_member(coordinator)
    listed = coordinator.call(handle_list_groups, ALL_GROUPS)
    assert [(group.group_id, group.group_state) for group in listed.groups] == [("g", "Stable")]
    request = DescribeGroupsRequest(groups=("g", "missing"), include_authorized_operations=False)
    described, missing = coordinator.call(handle_describe_groups, request, api_version=6).groups
    (member,) = described.members
    assert (member.member_id, member.client_id, member.client_host) == (
        member_id,
        "client",
        f"/{coordinator.client.session.peer_address}",
    )
    assert missing.error_code is ErrorCode.group_id_not_found


def test_groups_and_their_offsets_are_deleted(coordinator):
    commit(coordinator, 3)
    asked = OffsetDeleteRequest(
        group_id="g",
        topics=(
            OffsetDeleteRequestTopic(
                name="orders", partitions=(OffsetDeleteRequestPartition(partition_index=1),)
            ),
        ),
    )
    response = coordinator.call(handle_offset_delete, asked)
    assert response.topics[0].partitions[0].error_code is ErrorCode.none
    assert committed(coordinator, "g") == {"g": {}}
    commit(coordinator, 4)
    request = DeleteGroupsRequest(groups_names=("g", "missing"))
    results = coordinator.call(handle_delete_groups, request).results
    assert [result.error_code for result in results] == [
        ErrorCode.none,
        ErrorCode.group_id_not_found,
    ]
    assert coordinator.call(handle_list_groups, ALL_GROUPS).groups == ()


def test_a_consumer_group(coordinator):
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="me",
        member_epoch=0,
        rebalance_timeout=milliseconds(10_000),
        subscribed_topic_names=("orders",),
        topic_partitions=(),
    )
    joined = coordinator.call(handle_consumer_group_heartbeat, joining, api_version=1)
    assert joined.error_code is ErrorCode.none
    (assigned,) = joined.assignment.topic_partitions
    assert assigned.partitions == (0, 1)
    request = ConsumerGroupDescribeRequest(group_ids=("g",), include_authorized_operations=False)
    (described,) = coordinator.call(handle_consumer_group_describe, request).groups
    assert (described.group_state, len(described.members)) == ("Stable", 1)
    (other,) = coordinator.call(
        handle_consumer_group_describe,
        ConsumerGroupDescribeRequest(group_ids=("none",), include_authorized_operations=False),
    ).groups
    assert other.error_code is ErrorCode.group_id_not_found


def test_records_of_an_internal_topic_are_not_deleted_by_clients(coordinator):
    request = DeleteRecordsRequest(
        topics=(
            DeleteRecordsTopic(
                name=CONSUMER_OFFSETS_TOPIC,
                partitions=(DeleteRecordsPartition(partition_index=0, offset=0),),
            ),
        ),
        timeout=milliseconds(60_000),
    )
    response = coordinator.call(handle_delete_records, request)
    code = response.topics[0].partitions[0].error_code
    assert code is ErrorCode.invalid_topic_exception
