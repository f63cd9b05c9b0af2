"""ShareGroupDescribe, for a single group."""

from kio.schema.share_group_describe.v1.response import (
    Assignment as DescribedAssignment,
)
from kio.schema.share_group_describe.v1.response import (
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import i32

from ottla.groups.partitions import by_topic
from ottla.groups.share.group import ShareGroup
from ottla.groups.share.member import ShareMember
from ottla.groups.share.target import ASSIGNOR_NAME
from ottla.machine.catalog import TopicCatalog
from ottla.protocol.errors import ApiError, ErrorCode


def describe(group: ShareGroup, catalog: TopicCatalog) -> DescribedGroup:
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state_name,
        group_epoch=i32(group.epoch),
        assignment_epoch=i32(group.assignment_epoch),
        assignor_name=ASSIGNOR_NAME,
        members=tuple(_describe_member(member, catalog) for member in group.members.values()),
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


def _describe_member(member: ShareMember, catalog: TopicCatalog) -> Member:
    """Omits deleted topics."""
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=i32(member.epoch),
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=tuple(map(TopicName, member.subscribed_topic_names)),
        assignment=DescribedAssignment(
            topic_partitions=tuple(
                TopicPartitions(
                    topic_id=topic_id,
                    topic_name=TopicName(name),
                    partitions=tuple(map(i32, partitions)),
                )
                for topic_id, partitions in by_topic(member.assigned).items()
                if (name := catalog.topic_name(topic_id)) is not None
            )
        ),
    )
