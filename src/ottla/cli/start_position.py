"""Where `ottla consume` starts to read each partition."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from confluent_kafka import Consumer, TopicPartition

from ottla.cli.connection import TIMEOUT_S
from ottla.cli.errors import CommandError, UsageError


class OffsetRange(NamedTuple):
    start: int
    end: int  # The offset that the next record gets.


@dataclass(frozen=True, slots=True)
class StartPosition:
    offset: int | Literal["earliest", "latest"] = "latest"  # Negative: counted from the end.
    timestamp_ms: int | None = None  # Instead of an offset.

    def resolve(
        self,
        consumer: Consumer,
        topic_partitions: Sequence[TopicPartition],
        ranges: Mapping[int, OffsetRange],
    ) -> list[TopicPartition]:
        """The same partitions with offsets; `ranges` is by partition."""
        if self.timestamp_ms is None:
            return [
                _at(each, self._offset_in(each, ranges[each.partition]))
                for each in topic_partitions
            ]
        wanted = [_at(each, self.timestamp_ms) for each in topic_partitions]
        found = consumer.offsets_for_times(wanted, timeout=TIMEOUT_S)
        return [
            each if each.offset >= 0 else _at(each, ranges[each.partition].end) for each in found
        ]

    def _offset_in(self, topic_partition: TopicPartition, held: OffsetRange) -> int:
        if self.offset == "earliest":
            return held.start
        if self.offset == "latest":
            return held.end
        if self.offset < 0:
            return max(held.start, held.end + self.offset)
        if not held.start <= self.offset <= held.end:
            raise CommandError(
                f"offset {self.offset} is not in partition {topic_partition.partition} of "
                f"{topic_partition.topic}, which goes from {held.start} to {held.end}"
            )
        return self.offset


def parse_start(
    *, from_beginning: bool, offset: str | None, timestamp: str | None
) -> StartPosition:
    if from_beginning + (offset is not None) + (timestamp is not None) > 1:
        raise UsageError("give only one of --from-beginning, --offset and --timestamp")
    if timestamp is not None:
        return StartPosition(timestamp_ms=parse_timestamp(timestamp))
    if from_beginning or offset == "earliest":
        return StartPosition("earliest")
    if offset is None or offset == "latest":
        return StartPosition("latest")
    try:
        return StartPosition(int(offset))
    except ValueError:
        raise UsageError(f"--offset {offset!r} is not a number, earliest or latest") from None


def parse_timestamp(text: str) -> int:
    """Milliseconds since 1970 of digits or ISO 8601; a time without a zone is local time."""
    if text.isdecimal():
        return int(text)
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--timestamp {text!r} is neither ISO 8601 (2026-01-31T12:00:00Z) nor milliseconds"
        ) from None
    return round(moment.astimezone().timestamp() * 1000)


def _at(topic_partition: TopicPartition, offset: int) -> TopicPartition:
    return TopicPartition(topic_partition.topic, topic_partition.partition, offset)
