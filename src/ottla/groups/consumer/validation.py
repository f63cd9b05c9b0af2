"""Validates consumer group heartbeats."""

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest

from ottla.groups.caller import Caller
from ottla.groups.config import GroupConfig
from ottla.groups.consumer.member import LEFT_TEMPORARILY_EPOCH, ConsumerMember
from ottla.groups.consumer.subscription import compiled
from ottla.groups.partitions import Assignment
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.times import in_milliseconds

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
_MEMBER_ID_BY_CLIENT_SINCE = 1


def validate_heartbeat(
    request: ConsumerGroupHeartbeatRequest, caller: Caller, config: GroupConfig
) -> None:
    _require(bool(request.group_id), "the group id is empty")
    _require(request.instance_id != "", "the instance id is empty")
    _require(request.rack_id != "", "the rack id is empty")
    _require(
        request.member_epoch >= LEFT_TEMPORARILY_EPOCH,
        f"{request.member_epoch} is not a member epoch",
    )
    if request.member_epoch != JOIN_EPOCH or caller.api_version >= _MEMBER_ID_BY_CLIENT_SINCE:
        _require(bool(request.member_id), "the member id is empty")
    if request.member_epoch == JOIN_EPOCH:
        _validate_join(request)
    if request.member_epoch == LEFT_TEMPORARILY_EPOCH:
        _require(request.instance_id is not None, "only a static member leaves temporarily")
    if request.server_assignor is not None:
        _validate_assignor(request.server_assignor, config)
    if request.subscribed_topic_regex:
        compiled(request.subscribed_topic_regex)


def _validate_join(request: ConsumerGroupHeartbeatRequest) -> None:
    _require(
        in_milliseconds(request.rebalance_timeout) >= 0, "a member joins with its rebalance timeout"
    )
    _require(request.topic_partitions == (), "a member that joins owns no partitions")
    _require(
        request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None,
        "a member joins with its subscription",
    )


def _validate_assignor(name: str, config: GroupConfig) -> None:
    if name not in config.consumer_assignors:
        raise ApiError(
            ErrorCode.unsupported_assignor,
            f"there is no assignor {name}; there are {', '.join(config.consumer_assignors)}",
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
            f"the member's epoch is {member.epoch}, not {epoch}; it has to join again",
        )
