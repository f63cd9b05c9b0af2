"""Reads a topic as a member of a group: from where the group is, committing what was printed."""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ottla.cli.connection import LOOK_AFTER_S, Connection, describe_error
from ottla.cli.errors import CommandError

POLL_S = 0.5


class GroupReader:
    def __init__(
        self, connection: Connection, topic: str, group: str, *, from_beginning: bool, follow: bool
    ) -> None:
        self._connection = connection
        self._topic = topic
        self._follow = follow
        self._assigned = False
        self._look_at_nodes_at = time.monotonic() + LOOK_AFTER_S
        self._unread: set[int] = set()  # Of this member, and not read to the end.
        self._consumer = Consumer(
            connection.client_config(
                **{
                    "group.id": group,
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest" if from_beginning else "latest",
                    "enable.partition.eof": True,
                    "fetch.wait.max.ms": 100,
                }
            )
        )
        connection.partitions(self._consumer, topic)  # Else it would wait without a word.
        self._consumer.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke)

    @property
    def finished(self) -> bool:
        return not self._follow and self._assigned and not self._unread

    def poll(self, count: int) -> "list[Message[Any, Any]]":
        """At most so many records, as soon as there are some."""
        polled = self._consumer.consume(count, POLL_S)
        if not self._assigned and time.monotonic() > self._look_at_nodes_at:
            self._look_at_nodes_at = float("inf")
            self._connection.check_nodes()
        return [message for message in polled if self._is_record(message)]

    def done_with(self, messages: "Sequence[Message[Any, Any]]") -> None:
        """Commit what was printed; who stops between the two sees it again."""
        nexts = {message.partition() or 0: (message.offset() or 0) + 1 for message in messages}
        if nexts:
            topic_partitions = [
                TopicPartition(self._topic, *topic_partition) for topic_partition in nexts.items()
            ]
            with self._connection.errors(self._topic):
                self._consumer.commit(offsets=topic_partitions, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()

    def _is_record(self, message: "Message[Any, Any]") -> bool:
        error = message.error()
        if error is None:
            return True
        if error.code() == KafkaError._PARTITION_EOF:
            self._unread.discard(message.partition() or 0)
        elif not error.retriable():
            raise CommandError(describe_error(error, self._topic))
        return False

    def _on_assign(self, _: Consumer, topic_partitions: Sequence[TopicPartition]) -> None:
        self._assigned = True
        self._unread |= {topic_partition.partition for topic_partition in topic_partitions}

    def _on_revoke(self, _: Consumer, topic_partitions: Sequence[TopicPartition]) -> None:
        self._unread -= {topic_partition.partition for topic_partition in topic_partitions}
