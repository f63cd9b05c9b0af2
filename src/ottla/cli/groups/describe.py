"""`ottla groups describe`: members, offsets and lag."""

from collections.abc import Collection, Mapping
from typing import Any

from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, OffsetSpec
from kio.schema.share_group_describe.v1.response import DescribedGroup

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.groups.group_offsets import ConsumerGroupOffsets
from ottla.cli.groups.share_groups import (
    ShareOffset,
    find_share_group,
    member_rows,
    share_offsets,
)
from ottla.cli.groups.state_names import state_name
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson

COLUMNS = ("topic", "partition", "committed_offset", "end_offset", "lag", "client_id", "host")
SHARE_COLUMNS = ("topic", "partition", "start_offset", "end_offset", "lag", "parked")
MEMBER_COLUMNS = ("member_id", "instance_id", "client_id", "host", "partitions_count")

Place = tuple[str, int]


def describe(
    group: str,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show the members of a group, how far they have come and how far they are behind.

    The lag of a share group counts its parked records too: those that consumers hold, and those
    that wait for their time.

    Args:
        group: Name of the group.
    """
    document = document_of(connection, group)
    if as_json:
        print_json(document)
        return
    shared = document["protocol"] == "share"
    print_line(f"{group}  protocol {document['protocol']}  state {document['state']}")
    print_rows(SHARE_COLUMNS if shared else COLUMNS, document["partitions"])
    for row in document["partitions"]:
        if row.get("note"):
            print_line(f"{row['topic']}-{row['partition']}: {row['note']}")
    if document["members"]:
        print_line("")
        print_rows(MEMBER_COLUMNS, document["members"])


def document_of(connection: Connection, group: str) -> dict[str, Any]:
    admin = connection.admin()
    described = connection.result(admin.describe_consumer_groups([group])[group], of=group)
    if described.state is not ConsumerGroupState.DEAD:
        return {
            "group": group,
            "protocol": described.type.name.lower() if described.type else None,
            "state": described.state.name.lower().replace("rebalancing", "rebalance"),
            "partitions": _rows(connection, admin, described),
            "members": _members(described),
        }
    share_group = find_share_group(connection, group)
    if share_group is None:
        raise CommandError(f"there is no group {group}; `ottla groups list` shows the groups")
    return {
        "group": group,
        "protocol": "share",
        "state": state_name(share_group.group_state),
        "partitions": _share_rows(connection, admin, share_group),
        "members": member_rows(share_group),
    }


def _members(group: ConsumerGroupDescription) -> list[dict[str, Any]]:
    """Also those that have no partition."""
    return [
        {
            "member_id": member.member_id,
            "instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions_count": len(member.assignment.topic_partitions),
        }
        for member in group.members
    ]


def _rows(
    connection: Connection, admin: AdminClient, group: ConsumerGroupDescription
) -> list[dict[str, Any]]:
    """One row for each partition that is committed or owned."""
    members = len(group.members)
    committed = ConsumerGroupOffsets(connection, admin, group.group_id, members).read()
    owners = {
        (place.topic, place.partition): member
        for member in group.members
        for place in member.assignment.topic_partitions
    }
    places = sorted({*committed, *owners})
    ends = _end_offsets(connection, admin, places)
    rows = []
    for place in places:
        offset, end, member = committed.get(place), ends.get(place), owners.get(place)
        rows.append(
            {
                "topic": place[0],
                "partition": place[1],
                "committed_offset": offset,
                "end_offset": end,
                "lag": None if offset is None or end is None else max(0, end - offset),
                "client_id": member.client_id if member else None,
                "host": member.host if member else None,
            }
        )
    return rows


def _share_rows(
    connection: Connection, admin: AdminClient, group: DescribedGroup
) -> list[dict[str, Any]]:
    """One row for each partition that is assigned, or was begun; members share partitions."""
    begun = share_offsets(connection, group.group_id)
    assigned = {
        (topic.topic_name, partition)
        for member in group.members
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    }
    places = sorted({*begun, *assigned})
    ends = _end_offsets(connection, admin, places)
    return [
        {
            "topic": place[0],
            "partition": place[1],
            "start_offset": begun[place].start_offset if place in begun else None,
            "end_offset": ends[place],
            "lag": _share_lag(begun[place], ends[place]) if place in begun else None,
            "parked": begun[place].parked if place in begun else None,
            "note": begun[place].note if place in begun else None,
        }
        for place in places
    ]


def _share_lag(offset: ShareOffset, end_offset: int) -> int:
    """A coordinator that does not lead the partition cannot tell, and this is nearly the same."""
    if offset.lag is not None:
        return offset.lag
    return max(0, end_offset - offset.start_offset) + offset.parked


def _end_offsets(
    connection: Connection, admin: AdminClient, places: Collection[Place]
) -> Mapping[Place, int]:
    if not places:
        return {}
    futures = admin.list_offsets({TopicPartition(*place): OffsetSpec.latest() for place in places})
    return {
        (place.topic, place.partition): connection.result(future, of=place.topic).offset
        for place, future in futures.items()
    }
