"""Reads records, alone or as a member of a group."""

import datetime as dt
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException

from ottla.client.config import ConsumerConfig
from ottla.client.message_batch import MessageBatch
from ottla.client.messages import Message, TopicPartition, TopicPartitionLike
from ottla.client.serializers import Deserializer, raw

OnPartitions = Callable[[list[TopicPartition]], object]

M = TypeVar("M", bound=Message)

POLL_S = 1.0
_TIMEOUT_S = 30.0

_value_of = confluent_kafka.Message.value
_error_of = confluent_kafka.Message.error


class Consumer:
    """`Consumer(config)` or `Consumer(bootstrap_servers=..., group_id=...)`.

    What was handed out by `poll`, or by the iteration, counts as read when `commit` or the next
    `poll` is called. One thread uses a consumer.
    """

    def __init__(self, config: ConsumerConfig | None = None, **settings: Any) -> None:
        if config is not None and settings:
            raise TypeError("give a ConsumerConfig or its fields, not both")
        self.config = config or ConsumerConfig(**settings)
        self.raw = confluent_kafka.Consumer(self.config.settings())  # That of confluent-kafka.
        self._message_type = message_type(self.config.key_deserializer, Message)
        self._deserialize = deserializer_of(self.config.value_deserializer)
        self._stores = self.config.enable_auto_commit and self.config.group_id is not None
        self._handed_out = False  # Something, since offsets were stored.
        self._waiting: deque[Message] = deque()  # Fetched, and not yet handed out.
        self._problem: KafkaError | None = None  # To be raised by the next poll.
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """What was being worked on when the block failed is read again by the next consumer."""
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
        """A name that begins with `^` is a regular expression. The callbacks run inside `poll`."""

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
        """Read these, without the help of a group; with a mapping, from these offsets on."""
        if isinstance(partitions, Mapping):
            offsets = [_partition(partition, offset) for partition, offset in partitions.items()]
        else:
            offsets = [_partition(partition) for partition in partitions]
        self._waiting.clear()
        self.raw.assign(offsets)
        return self

    def unsubscribe(self) -> None:
        """Or give up what was assigned."""
        self._store_positions()
        self._waiting.clear()
        self.raw.unsubscribe()
        self.raw.unassign()

    @property
    def assignment(self) -> list[TopicPartition]:
        return _topic_partitions(self.raw.assignment())

    def poll(self, timeout: float = POLL_S, max_records: int | None = None) -> Sequence[Message]:
        """Messages, as soon as there are any and none after the timeout; at most `max_records`, or
        max_poll_records."""
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
        """Messages as they come, until the consumer is closed."""
        while not self._closed:
            self.fill()
            while self._waiting:
                self._handed_out = True
                yield self._waiting.popleft()

    def fill(self, timeout: float = POLL_S) -> None:
        """Fetch what `take` hands out, if nothing is left of that."""
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
        """What was handed out since the last poll does not count as read."""
        self._handed_out = False

    def commit(
        self, offsets: Mapping[TopicPartitionLike, int] | None = None, *, wait: bool = True
    ) -> None:
        """What was handed out, or these offsets: of the next message to read of each partition."""
        if offsets is None:
            positions = self.positions_to_commit()
        else:
            positions = [_partition(partition, offset) for partition, offset in offsets.items()]
        if positions:
            commit: Any = self.raw.commit  # Its types want a literal.
            commit(offsets=positions, asynchronous=not wait)

    def committed(
        self, partitions: Iterable[TopicPartitionLike] | None = None
    ) -> dict[TopicPartition, int]:
        """By partition; those without a committed offset are left out."""
        wanted = self.assignment if partitions is None else partitions
        found = self.raw.committed([_partition(partition) for partition in wanted], _TIMEOUT_S)
        return _offsets(found)

    def position(self, partition: TopicPartitionLike) -> int | None:
        """The offset of the next message that is handed out; None before the first."""
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
        """Behind what is there now."""
        for partition in self.assignment if partitions is None else partitions:
            _, end = self.raw.get_watermark_offsets(_partition(partition), _TIMEOUT_S)
            self.seek(partition, end)

    def seek_to_time(
        self, when: dt.datetime | int, partitions: Iterable[TopicPartitionLike] | None = None
    ) -> None:
        """To the first message at or after the time; an integer is milliseconds since 1970."""
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
        """Read again what was handed out and not committed."""
        committed = self.committed()
        for partition in self.assignment:
            if partition in committed:
                self.seek(partition, committed[partition])
            else:
                self.seek(partition, _RESETS.get(self.config.auto_offset_reset, OFFSET_BEGINNING))

    def pause(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        """`poll` goes on without these, or without any; the group does not notice."""
        paused = [*(self.assignment if partitions is None else partitions)]
        self._unread(paused)
        self.raw.pause([_partition(partition) for partition in paused])

    def resume(self, partitions: Iterable[TopicPartitionLike] | None = None) -> None:
        resumed = self.assignment if partitions is None else partitions
        self.raw.resume([_partition(partition) for partition in resumed])

    def lag(self) -> dict[TopicPartition, int]:
        """How many offsets each partition is ahead of what was handed out."""
        lags = {}
        positions = self.positions()
        for partition in self.assignment:
            low, high = self.raw.get_watermark_offsets(_partition(partition), _TIMEOUT_S)
            lags[partition] = max(0, high - max(low, positions.get(partition, low)))
        return lags

    def close(self) -> None:
        """Leave the group. With auto-commit, what was handed out is committed."""
        if not self._closed:
            self._closed = True
            self._store_positions()
            self.raw.close()

    def positions_to_commit(self) -> list[confluent_kafka.TopicPartition]:
        """What was handed out, as confluent-kafka wants it."""
        return [_partition(partition, offset) for partition, offset in self.positions().items()]

    def group_metadata(self) -> Any:
        """What a transaction wants to know of the group."""
        return self.raw.consumer_group_metadata()

    def _consume(self, count: int, timeout: float) -> Sequence[Message]:
        if self._problem is not None:
            problem, self._problem = self._problem, None
            raise KafkaException(problem)
        # Asked for more than there is, librdkafka waits until the time is over.
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
        """An error behind messages is raised when these are handed out."""
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
        """What was fetched of these and not handed out."""
        if self._waiting:
            gone = set(partitions)
            kept = [one for one in self._waiting if (one.topic, one.partition) not in gone]
            self._waiting = deque(kept)

    def _unread(self, partitions: Iterable[TopicPartitionLike]) -> None:
        """What was fetched of these and not handed out is fetched again when they are resumed."""
        positions = self.positions() if self._waiting else {}
        waiting = {(one.topic, one.partition) for one in self._waiting}
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
    """None where the bytes are wanted."""
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
