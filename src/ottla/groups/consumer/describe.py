"""ConsumerGroupDescribe, for a single group."""

from kio.schema.consumer_group_describe.v1.response import (
    Assignment as DescribedAssignment,
)
from kio.schema.consumer_group_describe.v1.response import (
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i8, i32

from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.member import ConsumerMember
from ottla.groups.partitions import Assignment, by_topic
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.errors import ApiError, ErrorCode

_CLASSIC_MEMBER = i8(0)
_CONSUMER_MEMBER = i8(1)


def describe(group: ConsumerGroup, catalog: TopicCatalog, default_assignor: str) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state_name,
        group_epoch=i32(group.epoch),
        assignment_epoch=i32(group.assignment_epoch),
        assignor_name=group.preferred_assignor(default_assignor),
        members=tuple(
            _describe_member(member, group.target(member.member_id), catalog)
            for member in group.members.values()
        ),
    )


def describe_missing(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(
        error_code=error.code,
        error_message=error.message,
        group_id=GroupId(group_id),
        group_state="",
        group_epoch=i32(0),
        assignment_epoch=i32(0),
        assignor_name="",
        members=(),
    )


def _describe_member(member: ConsumerMember, target: Assignment, catalog: TopicCatalog) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        subscribed_topic_regex=member.subscribed_topic_regex or "",
        assignment=_describe_assignment(member.held, catalog),
        target_assignment=_describe_assignment(target, catalog),
        member_type=_CLASSIC_MEMBER if member.uses_classic_protocol else _CONSUMER_MEMBER,
    )


def _describe_assignment(assignment: Assignment, catalog: TopicCatalog) -> DescribedAssignment:
    """Omits deleted topics."""
    return DescribedAssignment(
        topic_partitions=tuple(
            TopicPartitions(
                topic_id=topic_id,
                topic_name=TopicName(name),
                partitions=tuple(map(i32, partitions)),
            )
            for topic_id, partitions in by_topic(assignment).items()
            if (name := catalog.topic_name(topic_id)) is not None
        )
    )
