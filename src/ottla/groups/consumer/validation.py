"""Validates consumer group heartbeats."""

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest

from ottla.groups.caller import Caller
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.subscription import compiled
from ottla.groups.modern.validation import JOIN_EPOCH, LEFT_TEMPORARILY_EPOCH, require
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import in_milliseconds

_MEMBER_ID_BY_CLIENT_SINCE = 1


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, caller: Caller, config: GroupConfig
) -> None:
    require(bool(request.group_id), "GroupId can't be empty.")
    require(request.instance_id != "", "InstanceId can't be empty.")
    require(request.rack_id != "", "RackId can't be empty.")
    require(request.member_epoch >= LEFT_TEMPORARILY_EPOCH, "MemberEpoch is invalid.")
    if request.member_epoch != JOIN_EPOCH or caller.api_version >= _MEMBER_ID_BY_CLIENT_SINCE:
        require(bool(request.member_id), "MemberId can't be empty.")
    if request.member_epoch == JOIN_EPOCH:
        _validate_join(request)
    if request.member_epoch == LEFT_TEMPORARILY_EPOCH:
        require(request.instance_id is not None, "InstanceId can't be null.")
    if request.server_assignor is not None:
        _validate_assignor(request.server_assignor, config)
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex)


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    require(
        in_milliseconds(request.rebalance_timeout) >= 0,
        "RebalanceTimeoutMs must be provided in first request.",
    )
    require(request.topic_partitions == (), "TopicPartitions must be empty when (re-)joining.")
    require(
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
