"""Committed and pending offsets of all groups of a coordinator.

Offsets that a producer commits in a transaction are pending until the transaction's marker is
replayed. Of two commits for one partition the later one in the log wins, even if the earlier one
was pending and its marker comes last.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ottla.groups.offsets.records import OffsetCommitRecord, OffsetCommitValue
from ottla.machine.transactional import Transactional, TransactionMarker
from ottla.protocol.topics import TopicPartition


class Committed(NamedTuple):
    value: OffsetCommitValue
    order: int  # Position among all commits, in log order.


_new_tuple = tuple.__new__

GroupOffsets = dict[TopicPartition, Committed]


class OpenTransaction:
    """The offsets that a producer has committed in its current transaction."""

    __slots__ = ("groups", "producer_epoch")

    def __init__(self, producer_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.groups: dict[str, GroupOffsets] = {}


class OffsetStore:
    def __init__(self) -> None:
        self._committed: dict[str, GroupOffsets] = {}
        self._open: dict[int, OpenTransaction] = {}  # By producer id.
        self._producers: dict[str, set[int]] = {}  # Those with an open transaction, by group.
        self._commit_count = 0

    # Reading.

    def group_ids(self) -> Iterator[str]:
        yield from self._committed
        yield from self._producers

    def knows(self, group_id: str) -> bool:
        return group_id in self._committed or group_id in self._producers

    def of_group(self, group_id: str) -> Mapping[TopicPartition, Committed]:
        return self._committed.get(group_id, {})

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._producers

    def pending_partitions(self, group_id: str) -> set[TopicPartition]:
        """The partitions for which an undecided transaction has committed an offset."""
        return {
            topic_partition
            for producer_id in self._producers.get(group_id, ())
            for topic_partition in self._open[producer_id].groups.get(group_id, ())
        }

    def producer_epoch(self, producer_id: int) -> int | None:
        transaction = self._open.get(producer_id)
        return None if transaction is None else transaction.producer_epoch

    def topic_partitions_of_topics(self, topics: set[str]) -> set[tuple[str, TopicPartition]]:
        """The group and partition of every offset, committed or pending, of these topics."""
        sources = [self._committed, *(transaction.groups for transaction in self._open.values())]
        return {
            (group_id, topic_partition)
            for groups in sources
            for group_id, offsets in groups.items()
            for topic_partition in offsets
            if topic_partition.topic in topics
        }

    # Replaying.

    def replay(self, record: OffsetCommitRecord) -> None:
        group_id, topic_partition, value = record
        if value is None:
            self._remove(group_id, topic_partition)
            return
        offsets = self._committed.get(group_id)
        if offsets is None:
            offsets = self._committed[group_id] = {}
        offsets[topic_partition] = self._next(value)

    def replay_pending(
        self, producer_id: int, producer_epoch: int, record: OffsetCommitRecord
    ) -> None:
        group_id, topic_partition, value = record
        assert value is not None, "a transaction never removes an offset"
        transaction = self._open.setdefault(producer_id, OpenTransaction(producer_epoch))
        transaction.producer_epoch = producer_epoch
        transaction.groups.setdefault(group_id, {})[topic_partition] = self._next(value)
        self._producers.setdefault(group_id, set()).add(producer_id)

    def replay_marker(self, marker: TransactionMarker) -> None:
        transaction = self._open.pop(marker.producer_id, None)
        if transaction is None:
            return
        for group_id in transaction.groups:
            self._forget_producer(group_id, marker.producer_id)
        if marker.committed:
            self._commit(transaction)

    def _forget_producer(self, group_id: str, producer_id: int) -> None:
        producers = self._producers[group_id]
        producers.discard(producer_id)
        if not producers:
            del self._producers[group_id]

    def _commit(self, transaction: OpenTransaction) -> None:
        for group_id, offsets in transaction.groups.items():
            committed = self._committed.setdefault(group_id, {})
            for topic_partition, offset in offsets.items():
                if (
                    topic_partition not in committed
                    or committed[topic_partition].order < offset.order
                ):
                    committed[topic_partition] = offset

    def _next(self, value: OffsetCommitValue) -> Committed:
        self._commit_count += 1
        return _new_tuple(Committed, (value, self._commit_count))

    def _remove(self, group_id: str, topic_partition: TopicPartition) -> None:
        """Nor can a marker bring a removed offset back."""
        _discard(self._committed, group_id, topic_partition)
        for producer_id in tuple(self._producers.get(group_id, ())):
            groups = self._open[producer_id].groups
            _discard(groups, group_id, topic_partition)
            if group_id not in groups:
                self._forget_producer(group_id, producer_id)

    def snapshot(self) -> Iterator[OffsetCommitRecord | Transactional]:
        entries: list[tuple[int, OffsetCommitRecord | Transactional]] = [
            (offset.order, OffsetCommitRecord(group_id, topic_partition, offset.value))
            for group_id, offsets in self._committed.items()
            for topic_partition, offset in offsets.items()
        ]
        for producer_id, transaction in self._open.items():
            entries.extend(
                (
                    offset.order,
                    Transactional(
                        producer_id,
                        transaction.producer_epoch,
                        OffsetCommitRecord(group_id, topic_partition, offset.value),
                    ),
                )
                for group_id, offsets in transaction.groups.items()
                for topic_partition, offset in offsets.items()
            )
        for _, record in sorted(entries, key=lambda entry: entry[0]):
            yield record


def _discard(
    groups: dict[str, GroupOffsets], group_id: str, topic_partition: TopicPartition
) -> None:
    offsets = groups.get(group_id)
    if offsets is not None:
        offsets.pop(topic_partition, None)
        if not offsets:
            del groups[group_id]
