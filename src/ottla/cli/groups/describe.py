"""`ottla groups describe`: members, committed offsets and lag."""

from typing import Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, OffsetSpec

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson

COLUMNS = ("topic", "partition", "committed_offset", "end_offset", "lag", "client_id", "host")

MEMBER_COLUMNS = ("member_id", "instance_id", "client_id", "host", "partitions_count")

Place = tuple[str, int]


def describe(
    group: str,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show the members of a group, what they committed and how far they are behind.

    Args:
        group: Name of the group.
    """
    admin = connection.admin()
    described = connection.result(admin.describe_consumer_groups([group])[group], of=group)
    if described.state is ConsumerGroupState.DEAD:
        raise CommandError(f"there is no group {group}; `ottla groups list` shows the groups")
    document = {
        "group": group,
        "protocol": described.type.name.lower() if described.type else None,
        "state": described.state.name.lower(),
        "partitions": _rows(connection, admin, described),
        "members": _members(described),
    }
    if as_json:
        print_json(document)
        return
    print_line(f"{group}  protocol {document['protocol']}  state {document['state']}")
    print_rows(COLUMNS, document["partitions"])
    if document["members"]:
        print_line("")
        print_rows(MEMBER_COLUMNS, document["members"])


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
    committed = committed_offsets(connection, admin, group.group_id)
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


def committed_offsets(connection: Connection, admin: AdminClient, group: str) -> dict[Place, int]:
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    places = connection.result(futures[group], of=group).topic_partitions
    return {(place.topic, place.partition): place.offset for place in places if place.offset >= 0}


def _end_offsets(
    connection: Connection, admin: AdminClient, places: list[Place]
) -> dict[Place, int]:
    if not places:
        return {}
    futures = admin.list_offsets({TopicPartition(*place): OffsetSpec.latest() for place in places})
    return {
        (place.topic, place.partition): connection.result(future, of=place.topic).offset
        for place, future in futures.items()
    }
