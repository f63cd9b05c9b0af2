"""`ottla groups reset-offsets`: move what a group has committed."""

from collections.abc import Sequence
from typing import Annotated, Any

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from cyclopts import Parameter

from ottla.cli.connection import DEFAULT_CONNECTION, Connection, describe_error
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.groups.describe import committed_offsets
from ottla.cli.groups.reset_target import Offsets, Partitions, Place, Target, parse_target
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag

COLUMNS = ("topic", "partition", "committed_offset", "new_offset", "end_offset", "new_lag")

_WITHOUT_MEMBERS = {ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD}


def reset_offsets(
    group: str,
    /,
    *,
    topic: list[str] | None = None,
    partition: list[int] | None = None,
    to_earliest: Flag = False,
    to_latest: Flag = False,
    to_offset: int | None = None,
    to_timestamp: str | None = None,
    shift_by: Annotated[int | None, Parameter(allow_leading_hyphen=True)] = None,
    dry_run: Flag = False,
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Move the committed offsets of a group that has no members.

    Args:
        group: Name of the group.
        topic: Only this topic; may be repeated. Without it, every topic that the group committed.
        partition: Only this partition of the topic; may be repeated.
        to_earliest: To the oldest record.
        to_latest: To the end.
        to_offset: To this offset, or to the nearest one that a partition has.
        to_timestamp: To the first record of this time or later: ISO 8601, or milliseconds.
        shift_by: By so many records; a negative number goes back.
        dry_run: Show what would be done, and do nothing.
    """
    target = parse_target(
        to_earliest=to_earliest,
        to_latest=to_latest,
        to_offset=to_offset,
        to_timestamp=to_timestamp,
        shift_by=shift_by,
    )
    if partition and (topic is None or len(topic) != 1):
        raise UsageError("--partition needs exactly one --topic")
    admin = connection.admin()
    committed = committed_offsets(connection, admin, group)
    places = _places(connection, group, topic, partition, committed)
    rows = _plan(Partitions(connection, admin), target, places, committed)
    if not dry_run:
        _validate_without_members(connection, admin, group)
        _commit(connection, admin, group, rows)
    _print(group, rows, dry_run=dry_run, as_json=as_json)


def _places(
    connection: Connection,
    group: str,
    topics: list[str] | None,
    partitions: list[int] | None,
    committed: Offsets,
) -> list[Place]:
    if topics is None:
        if not committed:
            raise CommandError(f"{group} has committed nothing; name a --topic")
        return sorted(committed)
    existing = connection.metadata().topics
    found: list[Place] = []
    for topic in topics:
        if topic not in existing:
            raise CommandError(f"there is no topic {topic}; `ottla topics list` shows the topics")
        indexes = sorted(existing[topic].partitions)
        for index in partitions or ():
            if index not in indexes:
                raise CommandError(
                    f"{topic} has no partition {index}; it has {len(indexes)}, from 0"
                )
        found += [(topic, index) for index in partitions or indexes]
    return found


def _plan(
    partitions: Partitions, target: Target, places: Sequence[Place], committed: Offsets
) -> list[dict[str, Any]]:
    """One row for each partition that moves; no offset leaves what the partition holds."""
    ranges = partitions.ranges(places)
    rows = []
    for place, wished in target.offsets(partitions, places, committed).items():
        end = ranges.ends[place]
        offset = min(max(wished, ranges.starts[place]), end)
        rows.append(
            {
                "topic": place[0],
                "partition": place[1],
                "committed_offset": committed.get(place),
                "new_offset": offset,
                "end_offset": end,
                "new_lag": end - offset,
            }
        )
    return rows


def _validate_without_members(connection: Connection, admin: AdminClient, group: str) -> None:
    described = connection.result(admin.describe_consumer_groups([group])[group], of=group)
    if described.state not in _WITHOUT_MEMBERS:
        raise CommandError(
            f"{group} has {len(described.members)} members, who would go on where they are; "
            "stop its members first"
        )


def _commit(
    connection: Connection, admin: AdminClient, group: str, rows: list[dict[str, Any]]
) -> None:
    places = [TopicPartition(row["topic"], row["partition"], row["new_offset"]) for row in rows]
    if not places:
        return
    request = ConsumerGroupTopicPartitions(group, places)
    answer = connection.result(admin.alter_consumer_group_offsets([request])[group], of=group)
    for place in answer.topic_partitions:
        if place.error is not None:
            raise CommandError(describe_error(place.error, f"{place.topic}-{place.partition}"))


def _print(group: str, rows: list[dict[str, Any]], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "reset": not dry_run, "partitions": rows})
        return
    print_rows(COLUMNS, rows)
    if dry_run:
        print_line(f"nothing was changed in {group}; without --dry-run it would be")
