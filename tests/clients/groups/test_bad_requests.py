"""A coordinator's answers to group requests with a single error.

The error codes are Apache Kafka's; these tests run against it too.
"""

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from kio.schema.consumer_group_describe.v1.request import ConsumerGroupDescribeRequest
from kio.schema.consumer_group_heartbeat.v1.request import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kio.schema.delete_groups.v2.request import DeleteGroupsRequest
from kio.schema.describe_groups.v6.request import DescribeGroupsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v6.request import FindCoordinatorRequest
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.leave_group.v2.request import LeaveGroupRequest as OldLeaveGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_delete.v0.request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kio.schema.offset_fetch.v9.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.share_group_describe.v1.request import ShareGroupDescribeRequest
from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64
from tests.broker_process import BrokerProcess, ExternalBroker
from tests.clients.confluent_client import ConfluentClient
from tests.clients.wire import Wire

NONE = ErrorCode.none
INVALID = ErrorCode.invalid_request
UNKNOWN_MEMBER = ErrorCode.unknown_member_id
INCONSISTENT = ErrorCode.inconsistent_group_protocol
NOT_FOUND = ErrorCode.group_id_not_found
NO_GROUP = GroupId("")


def ms(count: int) -> i32Timedelta:
    return i32Timedelta.parse(dt.timedelta(milliseconds=count))


def names(*topics: str) -> tuple[TopicName, ...]:
    return tuple(map(TopicName, topics))


PROTOCOL = JoinGroupRequestProtocol(name="range", metadata=bytes(6) + b"\xff\xff\xff\xff")
JOIN = JoinGroupRequest(
    group_id=NO_GROUP,
    session_timeout=ms(6_000),
    rebalance_timeout=ms(6_000),
    member_id="",
    protocol_type="consumer",
    protocols=(PROTOCOL,),
)
SYNC = SyncGroupRequest(
    group_id=NO_GROUP,
    generation_id=i32(1),
    member_id="nobody",
    protocol_type="consumer",
    protocol_name="range",
    assignments=(),
)
BEAT = HeartbeatRequest(group_id=NO_GROUP, generation_id=i32(1), member_id="nobody")
CONSUMER_BEAT = ConsumerGroupHeartbeatRequest(
    group_id=NO_GROUP,
    member_id="member",
    member_epoch=i32(0),
    rebalance_timeout=ms(60_000),
    subscribed_topic_names=names("t"),
    topic_partitions=(),
)
SHARE_BEAT = ShareGroupHeartbeatRequest(
    group_id=NO_GROUP,
    member_id="member",
    member_epoch=i32(0),
    subscribed_topic_names=names("t"),
)


class Caller:
    """Sends requests for one group, unless another one is named."""

    def __init__(self, wire: Wire, group_id: str, topic: str) -> None:
        self.wire = wire
        self.group_id = GroupId(group_id)
        self.topic = topic

    def code(self, request: Any, **changes: Any) -> ErrorCode:
        changed = replace(request, **{"group_id": self.group_id, **changes})
        code: ErrorCode = self.wire.call(changed).error_code
        return code

    def leave(self, *members: MemberIdentity) -> tuple[ErrorCode, list[ErrorCode]]:
        response = self.wire.call(LeaveGroupRequest(group_id=self.group_id, members=members))
        return response.error_code, [member.error_code for member in response.members]

    def commit(
        self,
        *,
        group: str | None = None,
        topic: str | None = None,
        partition: int = 0,
        metadata: str = "",
        member: str = "",
        generation: int = -1,
    ) -> ErrorCode:
        committed = OffsetCommitRequestPartition(
            partition_index=i32(partition), committed_offset=i64(5), committed_metadata=metadata
        )
        name = TopicName(topic or self.topic)
        request = OffsetCommitRequest(
            group_id=GroupId(self.group_id if group is None else group),
            generation_id_or_member_epoch=i32(generation),
            member_id=member,
            topics=(OffsetCommitRequestTopic(name=name, partitions=(committed,)),),
        )
        code: ErrorCode = self.wire.call(request).topics[0].partitions[0].error_code
        return code

    def fetch(self, member: str | None = None, epoch: int = -1) -> ErrorCode:
        asked = OffsetFetchRequestGroup(
            group_id=self.group_id, member_id=member, member_epoch=i32(epoch), topics=None
        )
        response = self.wire.call(OffsetFetchRequest(groups=(asked,), require_stable=False))
        code: ErrorCode = response.groups[0].error_code
        return code

    def delete_offsets(self, group: str, topic: str) -> tuple[ErrorCode, list[ErrorCode]]:
        deleted = OffsetDeleteRequestPartition(partition_index=i32(0))
        named = OffsetDeleteRequestTopic(name=TopicName(topic), partitions=(deleted,))
        response = self.wire.call(OffsetDeleteRequest(group_id=GroupId(group), topics=(named,)))
        found = [
            partition.error_code for topic in response.topics for partition in topic.partitions
        ]
        return response.error_code, found

    def describe(self, request_type: Any, *groups: str) -> dict[str, tuple[ErrorCode, str | None]]:
        field = "groups" if request_type is DescribeGroupsRequest else "group_ids"
        asked: Any = {field: groups, "include_authorized_operations": False}
        described = self.wire.call(request_type(**asked)).groups
        return {group.group_id: (group.error_code, group.error_message) for group in described}


@pytest.fixture(scope="module")
def topic(group_broker: BrokerProcess | ExternalBroker) -> str:
    name = f"topic-{uuid.uuid4()}"
    ConfluentClient(group_broker.bootstrap).create_topic(name, 1)
    return name


@pytest.fixture
def caller(bootstrap: str, group_id: str, topic: str) -> Iterator[Caller]:
    with Wire(bootstrap) as wire:
        caller = Caller(wire, group_id, topic)
        find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=(group_id,))
        while wire.call(find).coordinators[0].error_code is not NONE:
            pass
        while caller.code(BEAT) is not UNKNOWN_MEMBER:
            pass
        yield caller


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": NO_GROUP}, ErrorCode.invalid_group_id),
        ({"session_timeout": ms(10)}, ErrorCode.invalid_session_timeout),
        ({"session_timeout": ms(3_600_000)}, ErrorCode.invalid_session_timeout),
        ({"member_id": "nobody"}, UNKNOWN_MEMBER),
        ({"member_id": "nobody", "group_instance_id": "i"}, UNKNOWN_MEMBER),
        ({"protocols": ()}, INCONSISTENT),
        ({"protocol_type": ""}, INCONSISTENT),
        ({"protocols": (PROTOCOL, PROTOCOL)}, ErrorCode.member_id_required),
        ({"rebalance_timeout": ms(-5)}, ErrorCode.member_id_required),
    ],
    ids=str,
)
def test_joining_a_classic_group(caller: Caller, changes: Any, code: ErrorCode) -> None:
    assert caller.code(JOIN, **changes) is code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": NO_GROUP}, ErrorCode.invalid_group_id),
        ({}, UNKNOWN_MEMBER),
        ({"group_instance_id": "nobody"}, UNKNOWN_MEMBER),
    ],
    ids=str,
)
def test_a_member_of_a_classic_group_that_nobody_knows(
    caller: Caller, changes: Any, code: ErrorCode
) -> None:
    assert caller.code(SYNC, **changes) is code
    assert caller.code(BEAT, **changes) is code


def test_syncing_without_a_protocol(caller: Caller) -> None:
    assert caller.code(SYNC, protocol_type=None) is INCONSISTENT
    assert caller.code(SYNC, protocol_name=None) is INCONSISTENT


def test_leaving_a_group_that_does_not_exist(caller: Caller) -> None:
    member = MemberIdentity(member_id="nobody")
    instance = MemberIdentity(member_id="", group_instance_id="nobody")
    assert caller.leave(member, instance) == (NONE, [UNKNOWN_MEMBER, UNKNOWN_MEMBER])
    assert caller.leave() == (NONE, [])
    request = LeaveGroupRequest(group_id=NO_GROUP, members=(member,))
    assert caller.wire.call(request).error_code is ErrorCode.invalid_group_id
    old = OldLeaveGroupRequest(group_id=caller.group_id, member_id="nobody")
    assert caller.wire.call(old).error_code is UNKNOWN_MEMBER


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": NO_GROUP}, INVALID),
        ({"member_id": ""}, INVALID),
        ({"member_epoch": i32(-3)}, INVALID),
        ({"member_epoch": i32(-2)}, INVALID),
        ({"member_epoch": i32(-1)}, NOT_FOUND),
        ({"member_epoch": i32(1)}, NOT_FOUND),
        ({"subscribed_topic_names": None}, INVALID),
        ({"subscribed_topic_names": ()}, NONE),
        ({"subscribed_topic_names": names("a", "a")}, NONE),
        ({"subscribed_topic_names": names("")}, NONE),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": ""}, NONE),
        (
            {"subscribed_topic_names": None, "subscribed_topic_regex": "("},
            ErrorCode.invalid_regular_expression,
        ),
        ({"rebalance_timeout": ms(-1)}, INVALID),
        ({"rebalance_timeout": ms(0)}, NONE),
        ({"topic_partitions": None}, INVALID),
        ({"topic_partitions": (TopicPartitions(topic_id=None, partitions=(i32(0),)),)}, INVALID),
        ({"server_assignor": "nobody"}, ErrorCode.unsupported_assignor),
        ({"server_assignor": ""}, ErrorCode.unsupported_assignor),
        ({"instance_id": ""}, INVALID),
        ({"rack_id": ""}, INVALID),
    ],
    ids=str,
)
def test_joining_a_consumer_group(caller: Caller, changes: Any, code: ErrorCode) -> None:
    assert caller.code(CONSUMER_BEAT, **changes) is code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"group_id": NO_GROUP}, INVALID),
        ({"member_id": ""}, INVALID),
        ({"member_epoch": i32(-2)}, INVALID),
        ({"member_epoch": i32(-1)}, NOT_FOUND),
        ({"member_epoch": i32(1)}, NOT_FOUND),
        ({"subscribed_topic_names": None}, INVALID),
        ({"subscribed_topic_names": ()}, INVALID),
        ({"subscribed_topic_names": names("a", "a")}, NONE),
        ({"rack_id": ""}, INVALID),
    ],
    ids=str,
)
def test_joining_a_share_group(caller: Caller, changes: Any, code: ErrorCode) -> None:
    assert caller.code(SHARE_BEAT, **changes) is code


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, NONE),
        ({"group": ""}, NONE),  # As before there were group members.
        ({"member": "nobody"}, NONE),
        ({"member": "nobody", "generation": 3}, UNKNOWN_MEMBER),
        ({"generation": 3}, UNKNOWN_MEMBER),
        ({"topic": "nowhere"}, ErrorCode.unknown_topic_or_partition),
        ({"partition": 99}, ErrorCode.unknown_topic_or_partition),
        ({"partition": -1}, ErrorCode.unknown_topic_or_partition),
        ({"metadata": "x" * 5_000}, ErrorCode.offset_metadata_too_large),
    ],
    ids=str,
)
def test_committing_without_a_group(caller: Caller, changes: Any, code: ErrorCode) -> None:
    caller.commit()
    assert caller.commit(**changes) is code


def test_a_partition_that_does_not_exist_is_told_before_all_else(caller: Caller) -> None:
    unknown = ErrorCode.unknown_topic_or_partition
    assert caller.commit(member="nobody", generation=3, partition=99) is unknown
    assert caller.commit(member="nobody", generation=3, topic="nowhere") is unknown


def test_strangers_in_a_consumer_group(caller: Caller) -> None:
    assert caller.code(CONSUMER_BEAT) is NONE

    assert caller.commit() is UNKNOWN_MEMBER
    assert caller.commit(member="member", generation=99) is ErrorCode.stale_member_epoch
    assert caller.fetch() is NONE
    assert caller.fetch("nobody", 3) is UNKNOWN_MEMBER
    assert caller.fetch("member", 99) is ErrorCode.stale_member_epoch
    assert caller.code(SHARE_BEAT) is NOT_FOUND
    assert caller.code(JOIN, protocol_type="connect") is INCONSISTENT
    unreadable = replace(PROTOCOL, metadata=b"\x00")
    assert caller.code(JOIN, protocols=(unreadable,)) is ErrorCode.member_id_required
    assert caller.code(SYNC, member_id="member") is UNKNOWN_MEMBER
    assert caller.code(BEAT, member_id="member") is UNKNOWN_MEMBER


def test_describing_groups_that_are_not_there(caller: Caller) -> None:
    group, missing = caller.group_id, (NOT_FOUND, f"Group {caller.group_id} not found.")
    assert caller.describe(DescribeGroupsRequest, group) == {group: missing}
    for request_type in (ConsumerGroupDescribeRequest, ShareGroupDescribeRequest):
        described = caller.describe(request_type, group, "")
        assert described[group] == missing
        assert described[""][0] is ErrorCode.invalid_group_id
    caller.code(CONSUMER_BEAT)
    for describe_request, kind in (
        (DescribeGroupsRequest, "classic"),
        (ShareGroupDescribeRequest, "share"),
    ):
        other = (NOT_FOUND, f"Group {group} is not a {kind} group.")
        assert caller.describe(describe_request, group) == {group: other}


def test_deleting_what_is_not_there_or_in_use(caller: Caller) -> None:
    group = caller.group_id

    def delete() -> ErrorCode:
        code: ErrorCode = (
            caller.wire.call(DeleteGroupsRequest(groups_names=(group,))).results[0].error_code
        )
        return code

    assert delete() is NOT_FOUND
    assert caller.delete_offsets("", caller.topic) == (ErrorCode.invalid_group_id, [])
    assert caller.delete_offsets(group, caller.topic) == (NOT_FOUND, [])
    caller.commit()
    assert caller.delete_offsets(group, "nowhere") == (
        NONE,
        [ErrorCode.unknown_topic_or_partition],
    )
    caller.code(CONSUMER_BEAT, subscribed_topic_names=names(caller.topic))
    assert caller.delete_offsets(group, caller.topic) == (
        NONE,
        [ErrorCode.group_subscribed_to_topic],
    )
    assert delete() is ErrorCode.non_empty_group
