"""Read records, alone or as a member of a group."""

import datetime as dt
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException

from ottla.client.config import ConsumerConfig
from ottla.client.message_batch import MessageBatch
from ottla.client.messages import Message
from ottla.client.serializers import Deserializer, raw
from ottla.protocol.topics import TopicPartition

TopicPartitionLike = tuple[str, int]  # A `TopicPartition`, or any pair of that shape.
OnPartitions = Callable[[list[TopicPartition]], object]

M = TypeVar("M", bound=Message)

POLL_S = 1.0
_TIMEOUT_S = 30.0

_value_of = confluent_kafka.Message.value
_error_of = confluent_kafka.Message.error


class Consumer:
    """`Consumer(config)` or `Consumer(bootstrap_servers=..., group_id=...)`.

    Messages returned by `poll` or by iteration count as read once `commit` or the next `poll` is
    called. Not thread-safe.
    """

    def __init__(self, config: ConsumerConfig | None = None, **settings: Any) -> None:
        self.config = ConsumerConfig.of(config, settings)
        self.raw = confluent_kafka.Consumer(self.config.settings())  # The confluent-kafka consumer.
        self._message_type = message_type(self.config.key_deserializer, Message)
        self._deserialize = deserializer_of(self.config.value_deserializer)
        self._stores = self.config.enable_auto_commit and self.config.group_id is not None
        self._handed_out = False  # Whether any message was handed out since offsets were stored.
        self._waiting: deque[Message] = deque()  # Fetched, not yet handed out.
        self._problem: KafkaError | None = None  # Raised by the next poll.
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """If the block fails, the next consumer reads its current messages again."""
        if kind is not None:
            self.forget_handed_out()
        self.close()

    def subscribe(
        self,
        topics: Sequence[str] | str,
        *,
        on_assign: OnPartitions | None = None,
        on_revoke: OnPartitions | None = None,
        on_lost: OnPartitions | None = None,
    ) -> Self:
        """A name that starts with `^` is a regular expression. The callbacks run inside `poll`."""

        def assigned(_: object, partitions: list[Any]) -> None:
            if on_assign is not None:
                on_assign(_topic_partitions(partitions))

        def revoked(_: object, partitions: list[Any]) -> None:
            self._store_positions()
            if on_revoke is not None:
                on_revoke(_topic_partitions(partitions))
            self._forget(_topic_partitions(partitions))

        def lost(_: object, partitions: list[Any]) -> None:
            self._forget(_topic_partitions(partitions))
            if on_lost is not None:
                on_lost(_topic_partitions(partitions))

        names = [topics] if isinstance(topics, str) else list(topics)
        self.raw.subscribe(names, on_assign=assigned, on_revoke=revoked, on_lost=lost)
        return self

    def assign(
        self, partitions: Iterable[TopicPartitionLike] | Mapping[TopicPartitionLike, int]
    ) -> Self:
        """Read these partitions without group management; a mapping also sets the start offsets."""
        if isinstance(partitions, Mapping):
            offsets = [_partition(partition, offset) for partition, offset in partitions.items()]
        else:
            offsets = [_partition(partition) for partition in partitions]
        self._waiting.clear()
        self.raw.assign(offsets)
        return self

    def unsubscribe(self) -> None:
        """Also drops a manual assignment."""
        self._store_positions()
        self._waiting.clear()
        self.raw.unsubscribe()
        self.raw.unassign()

    @property
    def assignment(self) -> list[TopicPartition]:
        return _topic_partitions(self.raw.assignment())

    def poll(self, timeout: float = POLL_S, max_records: int | None = None) -> Sequence[Message]:
        """Return messages as soon as there are any, or none after the timeout.

        Returns at most `max_records`, by default max_poll_records.
        """
        count = self.config.max_poll_records if max_records is None else max_records
        if self._waiting:
            self._handed_out = True
            return [self._waiting.popleft() for _ in range(min(count, len(self._waiting)))]
        if self._handed_out:
            self._store_positions()
        messages = self._consume(count, timeout)
        self._handed_out = self._handed_out or bool(messages)
        return messages

    def __iter__(self) -> Iterator[Message]:
        """Yield messages until the consumer is closed."""
        while not self._closed:
            self.fill()
            while self._waiting:
                self._handed_out = True
                yield self._waiting.popleft()

    def fill(self, timeout: float = POLL_S) -> None:
        """Fetch messages for `take` if none are left."""
        if not self._waiting and not self._closed:
            if self._handed_out:
                self._store_positions()
            self._waiting.extend(self._consume(self.config.max_poll_records, timeout))

    def take(self) -> Message | None:
        if not self._waiting:
            return None
        self._handed_out = True
        return self._waiting.popleft()

    def forget_handed_out(self) -> None:
        """Messages handed out since the last poll do not count as read."""
        self._handed_out = False

    def commit(
        self, offsets: Mapping[TopicPartitionLike, int] | None = None, *, wait: bool = True
    ) -> None:
        """Commit the messages handed out, or these offsets (of the next message to read)."""
        if offsets is None:
            positions = self.positions_to_commit()
        else:
            positions = [_partition(partition, offset) for partition, offset in offsets.items()]
        if positions:
            commit: Any = self.raw.commit  # Its type stubs require a literal.
            commit(offsets=positions, asynchronous=not wait)

    def committed(
        self, partitions: Iterable[TopicPartitionLike] | None = None
    ) -> dict[TopicPartition, int]:
        """Committed offsets by partition; partitions without one are left out."""
        wanted = self.assignment if partitions is None else partitions
        found = self.raw.committed([_partition(partition) for partition in wanted], _TIMEOUT_S)
        return _offsets(found)

    def position(self, partition: TopicPartitionLike) -> int | None:
        """The offset of the next message to hand out; None before the first."""
        return self.positions([partition]).get(TopicPartition(*partition))

    def positions(
        self, partitions: Iterable[TopicPartitionLike] | None = None
    ) -> dict[TopicPartition, int]:
        wanted = self.assignment if partitions is None else partitions
        found = _offsets(self.raw.position([_partition(partition) for partition in wanted]))
        for message in reversed(self._waiting):
            partition = TopicPartition(message.topic, message.partition)
            if partition in found:
                found[partition] = message.offset
        return found

    def seek(self, partition: TopicPartitionLike, offset: int) -> None:
        self._forget([partition])
        self.raw.seek(_partition(partition, offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        for partition in self.assignment if partitions is None else partitions:
            self.seek(partition, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        """Skip all current records."""
        for partition in self.assignment if partitions is None else partitions:
            _, end = self.raw.get_watermark_offsets(_partition(partition), _TIMEOUT_S)
            self.seek(partition, end)

    def seek_to_time(
        self, when: dt.datetime | int, partitions: Iterable[TopicPartitionLike] | None = None
    ) -> None:
        """Seek to the first message at or after the time; an integer is milliseconds since 1970."""
        when_ms = when if isinstance(when, int) else int(when.timestamp() * 1000)
        wanted = self.assignment if partitions is None else partitions
        found = self.raw.offsets_for_times(
            [_partition(partition, when_ms) for partition in wanted], _TIMEOUT_S
        )
        for partition in found:
            if partition.error is not None:
                raise KafkaException(partition.error)
            self.seek((partition.topic, partition.partition), partition.offset)

    def rewind(self) -> None:
        """Read again all messages that were handed out but not committed."""
        committed = self.committed()
        for partition in self.assignment:
            if partition in committed:
                self.seek(partition, committed[partition])
            else:
                self.seek(partition, _RESETS.get(self.config.auto_offset_reset, OFFSET_BEGINNING))

    def pause(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        """`poll` skips these partitions, by default all; the group assignment stays."""
        paused = [*(self.assignment if partitions is None else partitions)]
        self._unread(paused)
        self.raw.pause([_partition(partition) for partition in paused])

    def resume(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        resumed = self.assignment if partitions is None else partitions
        self.raw.resume([_partition(partition) for partition in resumed])

    def lag(self) -> dict[TopicPartition, int]:
        """The distance from the position to the end of each partition."""
        lags = {}
        positions = self.positions()
        for partition in self.assignment:
            low, high = self.raw.get_watermark_offsets(_partition(partition), _TIMEOUT_S)
            lags[partition] = max(0, high - max(low, positions.get(partition, low)))
        return lags

    def close(self) -> None:
        """Leave the group. With auto-commit, commits the messages handed out."""
        if not self._closed:
            self._closed = True
            self._store_positions()
            self.raw.close()

    def positions_to_commit(self) -> list[confluent_kafka.TopicPartition]:
        """The positions to commit, in confluent-kafka's form."""
        return [_partition(partition, offset) for partition, offset in self.positions().items()]

    def group_metadata(self) -> Any:
        """The group metadata for a transaction."""
        return self.raw.consumer_group_metadata()

    def _consume(self, count: int, timeout: float) -> Sequence[Message]:
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise KafkaException(problem)
        # librdkafka waits for the whole timeout unless it finds all the messages asked for.
        found = self.raw.consume(count, 0)
        if not found and timeout:
            found = self.raw.consume(1, timeout)
            if found and count > 1:
                found += self.raw.consume(count - 1, 0)
        if next(filter(_error_of, found), None) is not None:
            found = self._without_errors(found)
        deserialize = self._deserialize
        if deserialize is None:
            return MessageBatch(self._message_type, found)
        values = map(deserialize, map(_value_of, found))
        return list(map(self._message_type, zip(values, found, strict=True)))

    def _without_errors(self, found: list[Any]) -> list[Any]:
        """An error that follows messages is raised after those are handed out."""
        errors = [message.error() for message in found if message.error() is not None]
        problem = next(
            (error for error in errors if error.code() != KafkaError._PARTITION_EOF), None
        )
        good = [message for message in found if message.error() is None]
        if problem is not None and not good:
            raise KafkaException(problem)
        self._problem = problem
        return good

    def _store_positions(self) -> None:
        if self._stores and self._handed_out:
            self._handed_out = False
            positions = self.positions_to_commit()
            if positions:
                self.raw.store_offsets(offsets=positions)

    def _forget(self, partitions: Iterable[TopicPartitionLike]) -> None:
        """Drop messages of these partitions that were fetched but not handed out."""
        if self._waiting:
            gone = set(partitions)
            kept = [
                message
                for message in self._waiting
                if (message.topic, message.partition) not in gone
            ]
            self._waiting = deque(kept)

    def _unread(self, partitions: Iterable[TopicPartitionLike]) -> None:
        """Messages fetched but not handed out are fetched again after `resume`."""
        positions = self.positions() if self._waiting else {}
        waiting = {(message.topic, message.partition) for message in self._waiting}
        for partition in partitions:
            if tuple(partition) in waiting:
                self.seek(partition, positions[TopicPartition(*partition)])


_RESETS = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}


def message_type(key_deserializer: Deserializer, base: type[M]) -> type[M]:
    if key_deserializer is raw:
        return base
    members: dict[str, Any] = {"deserialize_key": staticmethod(key_deserializer)}
    if base.__dictoffset__ == 0:
        members["__slots__"] = ()
    return type(base.__name__, (base,), members)


def deserializer_of(deserializer: Deserializer) -> Callable[[bytes | None], Any] | None:
    """None to keep the bytes."""
    if deserializer is raw:
        return None
    return lambda content: None if content is None else deserializer(content)


def _partition(
    partition: TopicPartitionLike, offset: int | None = None
) -> confluent_kafka.TopicPartition:
    if offset is None:
        return confluent_kafka.TopicPartition(*partition)
    return confluent_kafka.TopicPartition(*partition, offset)


def _topic_partitions(partitions: Iterable[Any]) -> list[TopicPartition]:
    return [TopicPartition(each.topic, each.partition) for each in partitions]


def _offsets(partitions: Iterable[Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(each.topic, each.partition): each.offset
        for each in partitions
        if each.offset >= 0
    }
