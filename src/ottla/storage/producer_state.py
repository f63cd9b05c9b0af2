"""The idempotent and transactional producers of a log.

A check changes nothing and precedes the append; an update follows it and cannot fail. The same
updates rebuild the state from the log: from the newest snapshot, batch by batch.

    check            what a client sent: epoch, sequence, duplicate, transaction
    check_epoch      what a coordinator writes for a producer, without a sequence
    check_marker     the end of a transaction
    update           a data batch was appended
    update_marker    a marker was appended
    replay           a batch was found in the log or fetched from the leader

As in Kafka 4, a producer that the log does not know (it is new, expired, or its records are gone)
may begin at any sequence; a new epoch of a known producer begins at 0; a duplicate is recognized
among the last five batches and answered with its original offsets; an older one is out of order.
Batches without a producer id never reach this module.

It is used under the log's lock, by one thread at a time; other threads may call `last_records` and
`first_unstable_offset`, which see the state as of some moment.
"""

import logging
from bisect import insort
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import SEQUENCE_MAX, TRANSACTIONAL_FLAG, BatchHeader, Buffer
from ottla.records.decoder import ControlType, Marker, iterate_records, parse_marker
from ottla.storage.filesystem import Filesystem, write_unsynced
from ottla.storage.producer_entry import NO_OFFSET, AppendedBatch, ProducerEntry
from ottla.storage.producer_snapshot import (
    CorruptSnapshot,
    decode_snapshot,
    encode_snapshot,
    snapshot_offsets,
    snapshot_path,
)
from ottla.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

EXPIRATION_MS = 24 * 3_600_000


class LastRecord(NamedTuple):
    """For compaction, which keeps the last batch of every remembered producer."""

    last_offset: int  # -1: only a marker of this epoch exists.
    producer_epoch: int


class ProducerStateManager:
    __slots__ = (
        "_filesystem",
        "_ongoing",
        "_producers",
        "_snapshots",
        "_unreplicated",
        "directory",
        "expiration_ms",
        "topic_partition",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        directory: str,
        filesystem: Filesystem,
        *,
        expiration_ms: int = EXPIRATION_MS,
        names: Iterable[str] | None = None,
    ) -> None:
        """`names` are the files in the directory, if known."""
        self.topic_partition = topic_partition
        self.directory = directory  # Updated when the directory is renamed.
        self.expiration_ms = expiration_ms
        self._filesystem = filesystem
        self._producers: dict[int, ProducerEntry] = {}
        self._ongoing: dict[int, int] = {}  # First offset to producer id. Invariant: sorted.
        self._unreplicated: dict[int, int] = {}  # First offset to the offset of the marker.
        self._snapshots = snapshot_offsets(
            filesystem.list(directory) if names is None else names
        )  # Invariant: sorted.

    def __len__(self) -> int:
        return len(self._producers)

    def __iter__(self) -> Iterator[ProducerEntry]:
        return iter(self._producers.values())

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self._producers.get(producer_id)

    def with_open_transactions(self) -> Iterator[ProducerEntry]:
        for producer_id in self._ongoing.values():
            yield self._producers[producer_id]

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest transaction without a marker begins."""
        return next(iter(self._ongoing), None)

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Where the oldest transaction begins whose marker is not below the high watermark."""
        unreplicated = self._unreplicated
        if unreplicated:
            self.forget_replicated(high_watermark)
        undecided = next(iter(self._ongoing), None)
        if not unreplicated:
            return undecided
        first = min(unreplicated)
        return first if undecided is None else min(first, undecided)

    def check(self, header: BatchHeader) -> AppendedBatch | None:
        """None: append it. A batch: it is a duplicate of that one. ApiError: reject it."""
        entry = self._producers.get(header.producer_id)
        if entry is None:
            return None
        if (
            header.base_sequence == entry.next_sequence
            and header.producer_epoch == entry.producer_epoch
        ):
            if entry.transaction_first_offset >= 0 and not header.is_transactional:
                raise self._not_transactional(header)
            return None
        return self._check_unexpected(header, entry)

    def check_epoch(self, header: BatchHeader) -> None:
        entry = self._producers.get(header.producer_id)
        if entry is not None and header.producer_epoch < entry.producer_epoch:
            raise self._fenced(header.producer_id, header.producer_epoch, entry.producer_epoch)

    def check_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        *,
        transaction_version: int = 0,
    ) -> None:
        """From version 2 on (KIP-890) every end of a transaction raises the producer's epoch.

        So a marker with the current epoch that arrives while a transaction is open is late: it
        belongs to the transaction before. Without an open one it is a harmless retry.
        """
        entry = self._producers.get(producer_id)
        if entry is None:
            return
        late = (
            transaction_version >= 2
            and producer_epoch == entry.producer_epoch
            and entry.transaction_first_offset >= 0
        )
        if late or producer_epoch < entry.producer_epoch:
            raise self._fenced(producer_id, producer_epoch, entry.producer_epoch)
        if coordinator_epoch < entry.coordinator_epoch:
            raise ApiError(
                ErrorCode.transaction_coordinator_fenced,
                f"coordinator epoch {coordinator_epoch} of a marker for producer {producer_id} "
                f"in {self.topic_partition} is behind {entry.coordinator_epoch}",
            )

    def update(self, header: BatchHeader, first_offset: int) -> None:
        """A data batch of a producer was appended at `first_offset`."""
        _, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, sequence, _ = header
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id)
        if entry.producer_epoch != epoch:
            entry.begin_epoch(epoch)
        last_sequence = sequence if sequence < 0 else (sequence + delta) & SEQUENCE_MAX
        entry.add_batch(
            AppendedBatch(sequence, last_sequence, first_offset, first_offset + delta, timestamp)
        )
        if attributes & TRANSACTIONAL_FLAG and entry.transaction_first_offset < 0:
            entry.transaction_first_offset = first_offset
            self._ongoing[first_offset] = producer_id

    def update_marker(
        self, header: BatchHeader, marker: Marker, offset: int
    ) -> AbortedTransaction | None:
        """A marker was appended; returns the transaction that it aborted, if it had records."""
        producer_id = header.producer_id
        entry = self._producers.get(producer_id)
        if entry is None:
            entry = self._producers[producer_id] = ProducerEntry(producer_id)
        first_offset = entry.transaction_first_offset
        entry.begin_epoch(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = header.max_timestamp
        entry.transaction_first_offset = NO_OFFSET
        if first_offset < 0:
            return None
        self._ongoing.pop(first_offset, None)
        self._unreplicated[first_offset] = offset
        if marker.type is not ControlType.ABORT:
            return None
        last_stable_offset = next(iter(self._ongoing), offset + 1)
        return AbortedTransaction(producer_id, first_offset, offset, last_stable_offset)

    def replay(
        self, batches: Buffer, position: int, header: BatchHeader
    ) -> AbortedTransaction | None:
        """Apply a batch in the log, whose header was read from `position`."""
        if header.producer_id < 0:
            return None
        if not header.is_control:
            self.update(header, header.base_offset)
            return None
        for record in iterate_records(batches, position):
            marker = parse_marker(record)
            if marker is not None:
                return self.update_marker(header, marker, record.offset)
        return None  # Compaction emptied it, or it is not a marker.

    def last_records(self) -> dict[int, LastRecord]:
        """By producer id."""
        return {
            entry.producer_id: LastRecord(entry.last_offset, entry.producer_epoch)
            for entry in list(self._producers.values())
        }

    def expire(self, now_ms: int) -> None:
        """Forget idle producers, except those with an open transaction."""
        expired = [entry for entry in self if self._is_expired(entry, now_ms)]
        for entry in expired:
            del self._producers[entry.producer_id]

    def forget_replicated(self, offset: int) -> None:
        """Everything before `offset` is replicated or gone; no producer is forgotten with it."""
        for first_offset, last_offset in list(self._unreplicated.items()):
            if last_offset < offset:
                self._unreplicated.pop(first_offset, None)

    def take_snapshot(self, end_offset: int) -> None:
        """Save the state after the record before `end_offset`.

        A crash may lose or tear the file, which only costs a longer replay.
        """
        if end_offset not in self._snapshots:
            path = snapshot_path(self.directory, end_offset)
            write_unsynced(self._filesystem, path, encode_snapshot(self))
            insort(self._snapshots, end_offset)

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int, now_ms: int) -> int:
        """Return to the newest snapshot that is valid for the log's current bounds.

        Returns the offset from which the log must replay its batches.
        """
        for offset in list(self._snapshots):
            if not log_start_offset < offset <= log_end_offset:
                self._remove_snapshot(offset)
        self._clear()
        while self._snapshots:
            offset = self._snapshots[-1]
            if self._load(offset, now_ms):
                return offset
            self._remove_snapshot(offset)
        return log_start_offset

    def truncate_fully(self) -> None:
        """The log is empty."""
        self._clear()
        for offset in list(self._snapshots):
            self._remove_snapshot(offset)

    @property
    def snapshots(self) -> tuple[int, ...]:
        """Their offsets, sorted."""
        return tuple(self._snapshots)

    def remove_snapshots_before(self, offset: int) -> None:
        for snapshot in list(self._snapshots):
            if snapshot < offset:
                self._remove_snapshot(snapshot)

    def remove_stray_snapshots(self, segment_base_offsets: Iterable[int]) -> None:
        """Keep those at a segment's base offset, and one past the last: the clean shutdown's."""
        base_offsets = set(segment_base_offsets)
        last = max(base_offsets, default=-1)
        strays = [offset for offset in self._snapshots if offset not in base_offsets]
        if strays and strays[-1] > last:
            strays.pop()
        for offset in strays:
            self._remove_snapshot(offset)

    def _check_unexpected(self, header: BatchHeader, entry: ProducerEntry) -> AppendedBatch | None:
        if header.producer_epoch < entry.producer_epoch:
            raise self._fenced(header.producer_id, header.producer_epoch, entry.producer_epoch)
        if header.producer_epoch == entry.producer_epoch:
            duplicate = entry.find_duplicate(header.base_sequence, header.last_sequence)
            if duplicate is not None:
                return duplicate
            raise self._out_of_order(header, f"{entry.next_sequence} comes next")
        if header.base_sequence != 0:
            raise self._out_of_order(header, "a new epoch begins at 0")
        if entry.transaction_first_offset >= 0 and not header.is_transactional:
            raise self._not_transactional(header)
        return None

    def _fenced(self, producer_id: int, producer_epoch: int, current_epoch: int) -> ApiError:
        return ApiError(
            ErrorCode.invalid_producer_epoch,
            f"epoch {producer_epoch} of producer {producer_id} in {self.topic_partition} "
            f"is behind {current_epoch}",
        )

    def _out_of_order(self, header: BatchHeader, expected: str) -> ApiError:
        return ApiError(
            ErrorCode.out_of_order_sequence_number,
            f"sequence {header.base_sequence} of producer {header.producer_id} epoch "
            f"{header.producer_epoch} in {self.topic_partition}: {expected}",
        )

    def _not_transactional(self, header: BatchHeader) -> ApiError:
        return ApiError(
            ErrorCode.invalid_txn_state,
            f"producer {header.producer_id} has an open transaction in {self.topic_partition}, "
            "but the batch is not part of it",
        )

    def _is_expired(self, entry: ProducerEntry, now_ms: int) -> bool:
        silent_ms = now_ms - entry.last_timestamp
        return entry.transaction_first_offset < 0 and silent_ms >= self.expiration_ms

    def _clear(self) -> None:
        self._producers.clear()
        self._ongoing.clear()
        self._unreplicated.clear()

    def _load(self, offset: int, now_ms: int) -> bool:
        path = snapshot_path(self.directory, offset)
        try:
            entries = decode_snapshot(self._filesystem.read_bytes(path))
        except (CorruptSnapshot, FileNotFoundError) as error:
            logger.warning("skipping producer snapshot %s: %s", path, error)
            return False
        entries.sort(key=lambda entry: entry.transaction_first_offset)
        for entry in entries:
            if not self._is_expired(entry, now_ms):
                self._producers[entry.producer_id] = entry
                if entry.transaction_first_offset >= 0:
                    self._ongoing[entry.transaction_first_offset] = entry.producer_id
        return True

    def _remove_snapshot(self, offset: int) -> None:
        self._snapshots.remove(offset)
        path = snapshot_path(self.directory, offset)
        if self._filesystem.exists(path):
            self._filesystem.remove(path)
