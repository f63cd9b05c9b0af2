"""`ottla groups reset-offsets`: move what a group has committed."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from confluent_kafka.admin import OffsetSpec
from cyclopts import Parameter

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.groups.group_offsets import GroupOffsets, Offsets, offsets_of, partition_offsets
from ottla.cli.groups.reset_target import AskOffsets, Target, parse_target, wanted_offsets
from ottla.cli.output import print_json, print_line, print_rows
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.topic_lookup import chosen_partitions, no_topic
from ottla.protocol.topics import TopicPartition

COLUMNS = ("topic", "partition", "committed_offset", "new_offset", "end_offset", "new_lag")


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
    """Reset the offsets of a group without members: committed ones, or a share group's start.

    Args:
        group: Name of the group.
        topic: Only this topic; may be repeated. By default every topic with committed offsets.
        partition: Only this partition of the topic; may be repeated.
        to_earliest: To the oldest record.
        to_latest: To the end.
        to_offset: To this offset, or to the nearest one that a partition has.
        to_timestamp: To the first record at or after this time: ISO 8601, or milliseconds.
        shift_by: By this many records; a negative number goes back.
        dry_run: Only show what would change.
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
    offsets = offsets_of(connection, admin, group)
    committed = offsets.read()
    topic_partitions = _topic_partitions(connection, group, topic, partition, committed)
    ask = partial(partition_offsets, connection, admin)
    rows = _plan(ask, target, topic_partitions, committed)
    if not dry_run:
        _move(offsets, group, rows)
    _print(group, rows, dry_run=dry_run, as_json=as_json)


def _topic_partitions(
    connection: Connection,
    group: str,
    topics: list[str] | None,
    partitions: list[int] | None,
    committed: Offsets,
) -> list[TopicPartition]:
    if topics is None:
        if not committed:
            raise CommandError(f"{group} has committed nothing; name a --topic")
        return sorted(committed)
    existing = connection.metadata().topics
    found: list[TopicPartition] = []
    for topic in topics:
        if topic not in existing:
            raise no_topic(topic)
        indexes = chosen_partitions(topic, existing[topic].partitions, partitions)
        found += [TopicPartition(topic, index) for index in indexes]
    return found


def _plan(
    ask: AskOffsets,
    target: Target,
    topic_partitions: Sequence[TopicPartition],
    committed: Offsets,
) -> list[dict[str, Any]]:
    """One row for each partition that moves; no offset leaves what the partition holds."""
    starts = ask(topic_partitions, OffsetSpec.earliest())
    ends = ask(topic_partitions, OffsetSpec.latest())
    wanted = wanted_offsets(target, ask, topic_partitions, committed)
    rows = []
    for topic_partition, wished in wanted.items():
        end = ends[topic_partition]
        offset = min(max(wished, starts[topic_partition]), end)
        rows.append(
            {
                **topic_partition._asdict(),
                "committed_offset": committed.get(topic_partition),
                "new_offset": offset,
                "end_offset": end,
                "new_lag": end - offset,
            }
        )
    return rows


def _move(offsets: GroupOffsets, group: str, rows: list[dict[str, Any]]) -> None:
    if offsets.member_count:
        raise CommandError(
            f"{group} has members ({offsets.member_count}), which would keep their own positions; "
            "stop them first"
        )
    if rows:
        offsets.write(
            {TopicPartition(row["topic"], row["partition"]): row["new_offset"] for row in rows}
        )


def _print(group: str, rows: list[dict[str, Any]], *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        print_json({"group": group, "reset": not dry_run, "partitions": rows})
        return
    print_rows(COLUMNS, rows)
    if dry_run:
        print_line(f"nothing was changed in {group}; without --dry-run it would be")
