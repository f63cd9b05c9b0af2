"""Where `ottla consume` starts to read each partition."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition

from ottla.cli.connection import TIMEOUT_S
from ottla.cli.errors import CommandError, UsageError


class OffsetRange(NamedTuple):
    start: int
    end: int  # The offset that the next record gets.


class StartPosition:
    def resolve(
        self,
        _: Consumer,
        topic_partitions: Sequence[TopicPartition],
        ranges: Mapping[int, OffsetRange],
    ) -> list[TopicPartition]:
        """The same partitions with offsets; `ranges` is by partition."""
        return [
            _at(each, self._offset_in(each, ranges[each.partition])) for each in topic_partitions
        ]

    def _offset_in(self, topic_partition: TopicPartition, held: OffsetRange) -> int:
        raise NotImplementedError


class AtBeginning(StartPosition):
    def _offset_in(self, _: TopicPartition, held: OffsetRange) -> int:
        return held.start


class AtEnd(StartPosition):
    def _offset_in(self, _: TopicPartition, held: OffsetRange) -> int:
        return held.end


@dataclass(frozen=True)
class AtOffset(StartPosition):
    offset: int  # Negative: counted from the end.

    def _offset_in(self, topic_partition: TopicPartition, held: OffsetRange) -> int:
        if self.offset < 0:
            return max(held.start, held.end + self.offset)
        if not held.start <= self.offset <= held.end:
            raise CommandError(
                f"offset {self.offset} is not in partition {topic_partition.partition} of "
                f"{topic_partition.topic}, "
                f"which goes from {held.start} to {held.end}"
            )
        return self.offset


@dataclass(frozen=True)
class AtTimestamp(StartPosition):
    timestamp_ms: int

    def resolve(
        self,
        consumer: Consumer,
        topic_partitions: Sequence[TopicPartition],
        ranges: Mapping[int, OffsetRange],
    ) -> list[TopicPartition]:
        wanted = [_at(topic_partition, self.timestamp_ms) for topic_partition in topic_partitions]
        found = consumer.offsets_for_times(wanted, timeout=TIMEOUT_S)
        return [
            topic_partition
            if topic_partition.offset >= 0
            else _at(topic_partition, ranges[topic_partition.partition].end)
            for topic_partition in found
        ]


def parse_start(
    *, from_beginning: bool, offset: str | None, timestamp: str | None
) -> StartPosition:
    if from_beginning + (offset is not None) + (timestamp is not None) > 1:
        raise UsageError("give only one of --from-beginning, --offset and --timestamp")
    if timestamp is not None:
        return AtTimestamp(parse_timestamp(timestamp))
    if offset is not None:
        return _parse_offset(offset)
    return AtBeginning() if from_beginning else AtEnd()


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


def _parse_offset(text: str) -> StartPosition:
    words: dict[str, StartPosition] = {"earliest": AtBeginning(), "latest": AtEnd()}
    if text in words:
        return words[text]
    try:
        return AtOffset(int(text))
    except ValueError:
        raise UsageError(f"--offset {text!r} is not a number, earliest or latest") from None


def _at(topic_partition: TopicPartition, offset: int) -> TopicPartition:
    return TopicPartition(topic_partition.topic, topic_partition.partition, offset)
