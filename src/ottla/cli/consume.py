"""`ottla consume`: read records of a topic, on one's own or as a member of a group."""

import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any

from confluent_kafka import Message
from cyclopts import Parameter

from ottla.cli.connection import DEFAULT_CONNECTION, Connection
from ottla.cli.errors import UsageError
from ottla.cli.group_reader import GroupReader
from ottla.cli.output import print_line
from ottla.cli.parameters import AsJson, Flag, validate_positive
from ottla.cli.partition_reader import PartitionReader
from ottla.cli.record_format import TemplateFormat, render_json
from ottla.cli.start_position import parse_start

POLL_RECORDS_MAX = 500

Render = Callable[["Message[Any, Any]"], bytes]


def consume(
    topic: str,
    /,
    *,
    from_beginning: Flag = False,
    offset: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    timestamp: str | None = None,
    partition: list[int] | None = None,
    group: str | None = None,
    count: int | None = None,
    tail: int | None = None,
    follow: Annotated[bool, Parameter(negative="--no-follow")] = True,
    format_: str = "{value}",
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Read records of a topic. By default it starts at the end and waits for new records.

    Args:
        topic: Name of the topic.
        from_beginning: Start with the oldest record.
        offset: Start at this offset of each partition; -N starts N records before the end.
        timestamp: Start with the first record at or after this time: ISO 8601, or milliseconds.
        partition: Read only this partition; may be repeated.
        group: Read as a member of this group, from its committed offsets, and commit what was
            printed. --from-beginning then applies to partitions without a committed offset.
        count: Stop after this many records.
        tail: Print this many of the topic's newest records, ordered by time, and stop.
        follow: Wait for more records at the end of the topic.
        format_: Output format of a record; {topic}, {partition}, {offset}, {timestamp}, {key},
            {value} and {headers} are replaced, \\n and \\t are a new line and a tab.
    """
    validate_positive("--count", count)
    if tail is not None:
        _validate_tail(tail, group, [from_beginning, offset, timestamp, count])
        follow, offset = False, str(-tail)
    start = parse_start(from_beginning=from_beginning, offset=offset, timestamp=timestamp)
    render = render_json if as_json else TemplateFormat(format_).render
    reader: PartitionReader | GroupReader
    if group is None:
        reader = PartitionReader(connection, topic, follow=follow)
    elif offset is not None or timestamp is not None or partition:
        raise UsageError("a group has its own offsets and partitions; leave those options out")
    else:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # A member leaves its group.
        reader = GroupReader(connection, topic, group, from_beginning=from_beginning, follow=follow)
    try:
        if isinstance(reader, PartitionReader):
            reader.assign(start, partition)
        if follow and sys.stderr.isatty():
            print_line(f"reading {topic}; press Ctrl-C to stop", sys.stderr)
        if tail is not None:
            _print_tail(reader, render, tail)
        else:
            _print_records(reader, render, sys.maxsize if count is None else count)
    finally:
        reader.close()


def _print_records(reader: PartitionReader | GroupReader, render: Render, count: int) -> None:
    output = sys.stdout.buffer
    while count and not reader.finished:
        messages = reader.poll(min(count, POLL_RECORDS_MAX))
        for message in messages:
            output.write(render(message))
        output.flush()
        reader.done_with(messages)
        count -= len(messages)


def _validate_tail(tail: int, group: str | None, others: list[object]) -> None:
    validate_positive("--tail", tail)
    if group is not None or any(others):
        raise UsageError("--tail says where to read; leave out --group, --count and where to start")


def _print_tail(reader: PartitionReader | GroupReader, render: Render, count: int) -> None:
    """Of the last records of each partition the last of all, as their timestamps say."""
    records = []
    while not reader.finished:
        records += reader.poll(POLL_RECORDS_MAX)
    records.sort(
        key=lambda record: (record.timestamp()[1], record.partition() or 0, record.offset() or 0)
    )
    for message in records[-count:]:
        sys.stdout.buffer.write(render(message))
    sys.stdout.buffer.flush()
