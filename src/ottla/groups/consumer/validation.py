"""Validates consumer group heartbeats."""

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest

from ottla.groups.caller import Caller
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.member import LEFT_TEMPORARILY_EPOCH, ConsumerMember
from ottla.groups.consumer.subscription import compiled
from ottla.groups.modern.group import epoch_refusal
from ottla.groups.partitions import Assignment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import in_milliseconds

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
_MEMBER_ID_BY_CLIENT_SINCE = 1


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, caller: Caller, config: GroupConfig
) -> None:
    _require(bool(request.group_id), "GroupId can't be empty.")
    _require(request.instance_id != "", "InstanceId can't be empty.")
    _require(request.rack_id != "", "RackId can't be empty.")
    _require(request.member_epoch >= LEFT_TEMPORARILY_EPOCH, "MemberEpoch is invalid.")
    if request.member_epoch != JOIN_EPOCH or caller.api_version >= _MEMBER_ID_BY_CLIENT_SINCE:
        _require(bool(request.member_id), "MemberId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _validate_join(request)
    if request.member_epoch == LEFT_TEMPORARILY_EPOCH:
        _require(request.instance_id is not None, "InstanceId can't be null.")
    if request.server_assignor is not None:
        _validate_assignor(request.server_assignor, config)
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex)


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(
        in_milliseconds(request.rebalance_timeout) >= 0,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    _require(request.topic_partitions == (), "TopicPartitions must be empty when (re-)joining.")
    _require(
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
        "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
    )


def _validate_assignor(name: str, config: GroupConfig) -> None:
    if name not in config.consumer_assignors:
        raise ApiError(
            ErrorCode.unsupported_assignor,
            f"ServerAssignor {name} is not supported."
            f" Supported assignors: {', '.join(config.consumer_assignors)}.",
        )


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.invalid_request, problem)


def validate_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    if epoch == member.epoch:
        return
    lost_response = (
        epoch == member.previous_epoch and owned is not None and owned <= member.assigned
    )
    if epoch > member.epoch or not lost_response:
        raise ApiError(
            ErrorCode.fenced_member_epoch,
            epoch_refusal("consumer", epoch, member.epoch),
        )
