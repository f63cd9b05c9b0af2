"""`ottla consume`: read records of a topic, without a group, from all of its partitions."""

import sys
from typing import Annotated

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from cyclopts import Parameter

from ottla.cli.connection import (
    DEFAULT_CONNECTION,
    TIMEOUT_S,
    Connection,
    describe_error,
    interruptible,
)
from ottla.cli.errors import CommandError, UsageError
from ottla.cli.output import print_line
from ottla.cli.parameters import AsJson, Flag
from ottla.cli.record_format import JsonFormat, RecordFormat, TemplateFormat
from ottla.cli.start_position import OffsetRange, StartPosition, parse_start

POLL_S = 0.5
POLL_RECORDS_MAX = 500


def consume(
    topic: str,
    /,
    *,
    from_beginning: Flag = False,
    offset: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
    timestamp: str | None = None,
    partition: list[int] | None = None,
    count: int | None = None,
    follow: Annotated[bool, Parameter(negative="--no-follow")] = True,
    format_: Annotated[str, Parameter(name="--format")] = "{value}",
    connection: Connection = DEFAULT_CONNECTION,
    as_json: AsJson = False,
) -> None:
    """Read records of a topic; without other wish those that are written from now on.

    Args:
        topic: Name of the topic.
        from_beginning: Start with the oldest record.
        offset: Start at this offset of each partition; -N starts N records before the end.
        timestamp: Start with the first record of this time or later: ISO 8601, or milliseconds.
        partition: Read only this partition; may be repeated.
        count: Stop after so many records.
        follow: Wait for more records at the end of the topic.
        format_: How a record is printed; {topic}, {partition}, {offset}, {timestamp}, {key},
            {value} and {headers} are replaced, \\n and \\t are a new line and a tab.
    """
    if count is not None and count < 1:
        raise UsageError(f"--count {count} is less than 1")
    start = parse_start(from_beginning=from_beginning, offset=offset, timestamp=timestamp)
    record_format = JsonFormat() if as_json else TemplateFormat(format_)
    reader = Reader(connection, topic, follow=follow)
    try:
        reader.assign(start, partition)
        if follow and sys.stderr.isatty():
            print_line(f"reading {topic}; ctrl-c ends", sys.stderr)
        reader.print_records(record_format, sys.maxsize if count is None else count)
    finally:
        reader.close()


class Reader:
    def __init__(self, connection: Connection, topic: str, *, follow: bool) -> None:
        self._connection = connection
        self._topic = topic
        self._follow = follow
        self._unread: dict[int, int] = {}  # Without follow: by partition, the offset to stop at.
        self._consumer = Consumer(
            connection.client_config(
                **{
                    "group.id": "ottla-cli",  # librdkafka wants one; nothing is committed to it.
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 100,
                    "error_cb": self._on_error,
                }
            )
        )
        self._unreachable: KafkaError | None = None

    def assign(self, start: StartPosition, partitions: list[int] | None) -> None:
        with self._connection.errors(self._topic), interruptible():
            chosen = [
                TopicPartition(self._topic, partition)
                for partition in self._choose_partitions(partitions)
            ]
            ranges = {place.partition: self._range_of(place) for place in chosen}
            assignment = start.resolve(self._consumer, chosen, ranges)
            self._unread = {
                place.partition: ranges[place.partition].end
                for place in assignment
                if place.offset < ranges[place.partition].end
            }
            self._consumer.assign(assignment)

    def print_records(self, record_format: RecordFormat, count: int) -> None:
        output = sys.stdout.buffer
        while count and (self._follow or self._unread):
            messages = self._consumer.consume(min(count, POLL_RECORDS_MAX), POLL_S)
            for message in messages:
                error = message.error()
                if error is not None:
                    self._on_message_error(error, message.partition())
                elif self._is_wanted(message.partition() or 0, message.offset() or 0):
                    output.write(record_format.render(message))
                    count -= 1
            output.flush()
            if not messages and self._unreachable and not self._follow:
                raise self._connection.unreachable(f"it went away ({self._unreachable.str()})")

    def close(self) -> None:
        self._consumer.close()

    def _choose_partitions(self, wanted: list[int] | None) -> list[int]:
        metadata = self._consumer.list_topics(self._topic, timeout=TIMEOUT_S).topics[self._topic]
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        existing = sorted(metadata.partitions)
        for partition in wanted or ():
            if partition not in existing:
                raise CommandError(
                    f"{self._topic} has no partition {partition}; it has {len(existing)}, from 0"
                )
        return sorted(set(wanted)) if wanted else existing

    def _range_of(self, place: TopicPartition) -> OffsetRange:
        return OffsetRange(*self._consumer.get_watermark_offsets(place, timeout=TIMEOUT_S))

    def _is_wanted(self, partition: int, offset: int) -> bool:
        """Without follow, what was written after the start of the command is left out."""
        if self._follow:
            return True
        end = self._unread.get(partition, 0)
        if offset >= end - 1:
            self._unread.pop(partition, None)
        return offset < end

    def _on_message_error(self, error: KafkaError, partition: int | None) -> None:
        if error.code() == KafkaError._PARTITION_EOF:
            self._unread.pop(partition or 0, None)
        elif not error.retriable():
            raise CommandError(describe_error(error, self._topic))

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            if self._follow and self._unreachable is None:
                print_line(
                    f"ottla: lost {self._connection.bootstrap_server}; trying again", sys.stderr
                )
            self._unreachable = error
