"""`ottla groups describe`: members, offsets and lag."""

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient, OffsetSpec
from kio.schema.share_group_describe.v1.response import DescribedGroup

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError
from ottla.cli.groups.group_offsets import ConsumerGroupOffsets, partition_offsets
from ottla.cli.groups.list import state_name
from ottla.cli.groups.share_groups import ShareOffset, find_share_group, share_offsets
from ottla.cli.groups.streams_groups import find_streams_group, readers
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson
from ottla.protocol.topics import TopicPartition

COLUMNS = ("topic", "partition", "committed_offset", "end_offset", "lag", "client_id", "host")
SHARE_COLUMNS = ("topic", "partition", "start_offset", "end_offset", "lag", "parked")
MEMBER_COLUMNS = ("member_id", "instance_id", "client_id", "host", "partitions_count")


def describe(
    group: str,
    /,
    *,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Show the members of a group, their offsets and their lag.

    The lag of a share group counts its parked records too: those that consumers hold, and those
    that are delayed.

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
        owners = {
            TopicPartition(assigned.topic, assigned.partition): (member.client_id, member.host)
            for member in described.members
            for assigned in member.assignment.topic_partitions
        }
        return {
            "group": group,
            "protocol": described.type.name.lower() if described.type else None,
            "state": described.state.name.lower().replace("rebalancing", "rebalance"),
            "partitions": _offset_rows(connection, admin, group, owners),
            "members": [
                {
                    "member_id": member.member_id,
                    "instance_id": member.group_instance_id,
                    "client_id": member.client_id,
                    "host": member.host,
                    "partitions_count": len(member.assignment.topic_partitions),
                }
                for member in described.members  # Also those that have no partition.
            ],
        }
    found: Any
    if found := find_streams_group(connection, group):
        reading = readers(found).items()
        owners = {each: (member.client_id, member.client_host) for each, member in reading}
        rows = _offset_rows(connection, admin, group, owners)
        protocol, parts_of = "streams", attrgetter("assignment.active_tasks")
    elif found := find_share_group(connection, group):
        rows = _share_rows(connection, admin, found)
        protocol, parts_of = "share", attrgetter("assignment.topic_partitions")
    else:
        raise CommandError(f"there is no group {group}; `ottla groups list` shows the groups")
    return {
        "group": group,
        "protocol": protocol,
        "state": state_name(found.group_state),
        "partitions": rows,
        "members": [
            {
                "member_id": member.member_id,
                "instance_id": getattr(member, "instance_id", None),
                "client_id": member.client_id,
                "host": member.client_host,
                "partitions_count": sum(len(part.partitions) for part in parts_of(member)),
            }
            for member in found.members
        ],
    }


def _offset_rows(
    connection: Connection,
    admin: AdminClient,
    group: str,
    owners: Mapping[TopicPartition, tuple[str, str]],
) -> list[dict[str, Any]]:
    """One row for each partition that is committed or owned; owners by client id and host."""
    committed = ConsumerGroupOffsets(connection, admin, group, len(owners)).read()
    topic_partitions = sorted({*committed, *owners})
    ends = partition_offsets(connection, admin, topic_partitions, OffsetSpec.latest())
    rows = []
    for topic_partition in topic_partitions:
        offset, end = committed.get(topic_partition), ends.get(topic_partition)
        client_id, host = owners.get(topic_partition, (None, None))
        rows.append(
            {
                **topic_partition._asdict(),
                "committed_offset": offset,
                "end_offset": end,
                "lag": None if offset is None or end is None else max(0, end - offset),
                "client_id": client_id,
                "host": host,
            }
        )
    return rows


def _share_rows(
    connection: Connection, admin: AdminClient, group: DescribedGroup
) -> list[dict[str, Any]]:
    """One row for each partition that is assigned, or was begun; members share partitions."""
    begun = share_offsets(connection, group.group_id)
    assigned = {
        TopicPartition(topic.topic_name, partition)
        for member in group.members
        for topic in member.assignment.topic_partitions
        for partition in topic.partitions
    }
    topic_partitions = sorted({*begun, *assigned})
    ends = partition_offsets(connection, admin, topic_partitions, OffsetSpec.latest())
    rows = []
    for topic_partition in topic_partitions:
        offset, end = begun.get(topic_partition), ends[topic_partition]
        rows.append(
            {
                **topic_partition._asdict(),
                "start_offset": offset and offset.start_offset,
                "end_offset": end,
                "lag": offset and _share_lag(offset, end),
                "parked": offset and offset.parked,
                "note": offset and offset.note,
            }
        )
    return rows


def _share_lag(offset: ShareOffset, end_offset: int) -> int:
    """A coordinator that does not lead the partition cannot tell, and this is nearly the same."""
    if offset.lag is not None:
        return offset.lag
    return max(0, end_offset - offset.start_offset) + offset.parked
