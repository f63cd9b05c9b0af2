"""Reads partitions of a topic by assignment: without a group, from offsets of one's choice."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ottla.cli.connection import Connection, describe_error, interruptible
from ottla.cli.errors import CommandError
from ottla.cli.output import print_line
from ottla.cli.start_position import OffsetRange, StartPosition
from ottla.cli.topic_lookup import chosen_partitions

POLL_S = 0.5


class PartitionReader:
    def __init__(self, connection: Connection, topic: str, *, follow: bool) -> None:
        self._connection = connection
        self._topic = topic
        self._follow = follow
        self._unread: dict[int, int] = {}  # Without follow: by partition, the offset to stop at.
        self._unreachable: KafkaError | None = None
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

    @property
    def finished(self) -> bool:
        return not self._follow and not self._unread

    def assign(self, start: StartPosition, partitions: list[int] | None) -> None:
        with self._connection.errors(self._topic), interruptible():
            existing = self._connection.partitions(self._consumer, self._topic)
            chosen = [
                TopicPartition(self._topic, partition)
                for partition in sorted(set(chosen_partitions(self._topic, existing, partitions)))
            ]
            ranges = {
                topic_partition.partition: self._range_of(topic_partition)
                for topic_partition in chosen
            }
            assignment = start.resolve(self._consumer, chosen, ranges)
            self._unread = {
                topic_partition.partition: ranges[topic_partition.partition].end
                for topic_partition in assignment
                if topic_partition.offset < ranges[topic_partition.partition].end
            }
            self._consumer.assign(assignment)

    def poll(self, count: int) -> "list[Message[Any, Any]]":
        """At most so many records, as soon as there are some."""
        polled = self._consumer.consume(count, POLL_S)
        if not polled and self._unreachable and not self._follow:
            raise self._connection.unreachable(f"it went away ({self._unreachable.str()})")
        return [message for message in polled if self._is_record(message)]

    def done_with(self, messages: "Sequence[Message[Any, Any]]") -> None:
        """Nobody remembers what was read."""

    def close(self) -> None:
        self._consumer.close()

    def _range_of(self, topic_partition: TopicPartition) -> OffsetRange:
        ask = partial(self._consumer.get_watermark_offsets, topic_partition)
        return OffsetRange(*self._connection.patiently(ask))

    def _is_record(self, message: "Message[Any, Any]") -> bool:
        error, partition = message.error(), message.partition() or 0
        if error is None:
            return self._is_wanted(partition, message.offset() or 0)
        if error.code() == KafkaError._PARTITION_EOF:
            self._unread.pop(partition, None)
        elif not error.retriable():
            raise CommandError(describe_error(error, self._topic))
        return False

    def _is_wanted(self, partition: int, offset: int) -> bool:
        """Without follow, what was written after the start of the command is left out."""
        if self._follow:
            return True
        end = self._unread.get(partition, 0)
        if offset >= end - 1:
            self._unread.pop(partition, None)
        return offset < end

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:
            if self._follow and self._unreachable is None:
                server = self._connection.bootstrap_server
                print_line(f"ottla: lost {server}; trying again", sys.stderr)
            self._unreachable = error
