"""DescribeGroups and ListGroups, for a single group."""

from kio.schema.describe_groups.v6.response import DescribedGroup, DescribedGroupMember
from kio.schema.types import GroupId

from ottla.groups.classic.group import ClassicGroup
from ottla.groups.classic.member import ClassicMember
from ottla.groups.classic.state import ClassicState
from ottla.protocol.errors import ErrorCode

_NOT_FOUND_SINCE = 6


def describe(group: ClassicGroup) -> DescribedGroup:
    """Shows metadata only for a stable group, and the last assignment until there is a new one."""
    stable = group.state is ClassicState.STABLE
    return DescribedGroup(
        error_code=ErrorCode.none,
        group_id=GroupId(group.group_id),
        group_state=group.state_name,
        protocol_type=group.protocol_type_name,
        protocol_data=(group.protocol or "") if stable else "",
        members=tuple(
            _describe_member(member, group.protocol, stable) for member in group.members.values()
        ),
    )


def _describe_member(
    member: ClassicMember, protocol: str | None, stable: bool
) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(protocol) if stable else b"",
        member_assignment=member.assignment,
    )


def describe_missing(group_id: str, api_version: int, error_message: str) -> DescribedGroup:
    """Before v6 (KIP-1043) a group that does not exist was shown as a dead one."""
    known_error = api_version >= _NOT_FOUND_SINCE
    return DescribedGroup(
        error_code=ErrorCode.group_id_not_found if known_error else ErrorCode.none,
        error_message=error_message if known_error else None,
        group_id=GroupId(group_id),
        group_state=ClassicState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=(),
    )
