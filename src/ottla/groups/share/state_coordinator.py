"""The machine of one partition of `__share_group_state`: the share coordinator (KIP-932).

It stores what the leaders of share-partitions write, and returns it to a new leader. Two epochs
fence writers that were overtaken:

    leader epoch  of the partition; writes and reads of an older leader are refused
    state epoch   grows when the state is made anew (offsets were reset); a leader that still works
                  on the old state is refused and has to read it again

A start offset of -1 means that the group has not begun to read the partition.

Writes are deltas, so each depends on those before it: a write whose predecessor was lost, with a
coordinator that was overtaken, must not be accepted. A leader that reads the state names its writer
number, and counts its writes. Only this coordinator remembers the writer: the next one refuses the
leader, which then reads what was kept. The same happens to writes still in flight when their leader
has read the state again.
"""

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, TypeVar
from uuid import UUID

from ottla.groups.share.delivery import DeliveryState, StateBatch
from ottla.groups.share.parked import NO_CHANGE, Parked, ParkedChange
from ottla.groups.share.state_batches import overlay
from ottla.groups.share.state_records import (
    DELIVERY_COMPLETE_COUNT_UNKNOWN,
    ShareParkedKey,
    ShareParkedValue,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
    StateBatchValue,
    StateKey,
)
from ottla.machine.catalog import TopicCatalog
from ottla.machine.record import Record, UnknownRecord
from ottla.machine.result import Result
from ottla.protocol.entities import entity
from ottla.protocol.errors import ApiError, ErrorCode

K = TypeVar("K", bound=StateKey)

NO_OFFSET = -1
NO_EPOCH = -1
NO_WRITER = 0  # For leaders that do not count their writes, and for readers that do not write.


class SharePartitionKey(NamedTuple):
    group_id: str
    topic_id: UUID
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The key for FindCoordinator, which also determines where the state is stored."""
        topic_id = base64.urlsafe_b64encode(self.topic_id.bytes).rstrip(b"=").decode()
        return f"{self.group_id}:{topic_id}:{self.partition}"


def parse_coordinator_key(text: str) -> SharePartitionKey:
    """ApiError(invalid_request) if it is malformed."""
    rest, _, partition = text.rpartition(":")
    group_id, _, topic_id = rest.rpartition(":")  # Group names may contain colons.
    try:
        decoded = base64.b64decode(f"{topic_id}==", altchars=b"-_", validate=True)
        return SharePartitionKey(group_id, UUID(bytes=decoded), int(partition))
    except ValueError:
        raise ApiError(
            ErrorCode.invalid_request, f"{text!r} is not group:topic-id:partition"
        ) from None


class StateWrite(NamedTuple):
    state_epoch: int
    leader_epoch: int
    start_offset: int  # NO_OFFSET if it has not moved.
    batches: tuple[StateBatch, ...]
    delivery_complete_count: int = DELIVERY_COMPLETE_COUNT_UNKNOWN
    parked: ParkedChange = NO_CHANGE
    writer: int = NO_WRITER
    sequence: int = 0  # How many writes of this writer came before.


@entity
class ShareState:
    """The state of one share-partition."""

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = NO_EPOCH
    start_offset: int = NO_OFFSET
    delivery_complete_count: int = DELIVERY_COMPLETE_COUNT_UNKNOWN
    batches: tuple[StateBatch, ...] = ()
    create_timestamp_ms: int = 0
    update_count: int = 0  # Since the last snapshot.
    parked_count: int = 0  # Set on reads.


class ShareStateMachine:
    """Implements `machine.contract.Machine`."""

    def __init__(self, *, catalog: TopicCatalog, updates_per_snapshot: int = 500) -> None:
        self._catalog = catalog
        self._updates_per_snapshot = updates_per_snapshot
        self._states: dict[SharePartitionKey, ShareState] = {}
        self._parked: dict[SharePartitionKey, Parked] = {}  # Only for those with parked records.
        # Writer and sequence of the next write; not persisted, see above.
        self._expected: dict[SharePartitionKey, tuple[int, int]] = {}

    # Machine.

    def replay(self, record: object, timestamp_ms: int) -> None:
        del timestamp_ms
        match record:
            case Record(key=ShareSnapshotKey() as key, value=ShareSnapshotValue() as value):
                self._states[_share_partition(key)] = _from_snapshot(value)
            case Record(key=ShareSnapshotKey() as key, value=None):
                self._states.pop(_share_partition(key), None)
                self._parked.pop(_share_partition(key), None)
                self._expected.pop(_share_partition(key), None)
            case Record(key=ShareUpdateKey() as key, value=ShareUpdateValue() as value):
                self._replay_update(_share_partition(key), value)
            case Record(key=ShareParkedKey() as key, value=ShareParkedValue() as value):
                self._replay_parked(_share_partition(key), ParkedChange.decode(value.change))
            case UnknownRecord() | Record(key=ShareUpdateKey() | ShareParkedKey(), value=None):
                pass
            case _:
                raise AssertionError(f"not a record of share-group state: {record}")

    def _replay_parked(self, share_partition: SharePartitionKey, change: ParkedChange) -> None:
        """Its snapshot may have been pruned, or may follow when everything is rewritten."""
        parked = self._parked.setdefault(share_partition, Parked())
        parked.apply(change)
        if not parked:
            del self._parked[share_partition]

    def _replay_update(self, share_partition: SharePartitionKey, value: ShareUpdateValue) -> None:
        """Its snapshot may have been pruned when the state was deleted: then it means nothing."""
        state = self._states.get(share_partition)
        if state is None:
            return
        moved = value.start_offset != NO_OFFSET
        start_offset = value.start_offset if moved else state.start_offset
        self._states[share_partition] = replace(
            state,
            leader_epoch=max(state.leader_epoch, value.leader_epoch),
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=overlay(state.batches, _batches(value.state_batches), start_offset),
            update_count=state.update_count + 1,
        )

    def snapshot(self) -> Iterable[object]:
        for share_partition, state in self._states.items():
            yield _snapshot_record(share_partition, state, state.create_timestamp_ms)
            for page in self._parked_pages(share_partition):
                yield _parked_record(share_partition, page)

    def on_loaded(self, now_ms: int) -> None:
        del now_ms

    # Operations.

    def initialize(
        self, share_partition: SharePartitionKey, state_epoch: int, start_offset: int, now_ms: int
    ) -> Result[None]:
        """Create the state, or recreate it with a later state epoch. Idempotent.

        Several heartbeats may create the same state. One that comes late must not undo what the
        group has done since.
        """
        self._validate_share_partition(share_partition)
        known = self._states.get(share_partition)
        if known is not None:
            self._validate_state_epoch(known, state_epoch)
            is_same = start_offset in (NO_OFFSET, known.start_offset)
            if is_same and state_epoch == known.state_epoch:
                return Result(None)
        state = ShareState(
            snapshot_epoch=0 if known is None else known.snapshot_epoch + 1,
            state_epoch=state_epoch,
            leader_epoch=NO_EPOCH if known is None else known.leader_epoch,
            start_offset=start_offset,
            create_timestamp_ms=now_ms,
        )
        records = [_snapshot_record(share_partition, state, now_ms)]
        if share_partition in self._parked:
            records.append(_parked_record(share_partition, _NONE_LEFT))
        return Result(None, tuple(records))

    def read(
        self,
        share_partition: SharePartitionKey,
        leader_epoch: int,
        now_ms: int,
        writer: int = NO_WRITER,
    ) -> Result[ShareState]:
        """For a new leader; from now on older leaders and older writers are refused."""
        state = self._known(share_partition)
        self._validate_leader_epoch(state, leader_epoch)
        self._validate_share_partition(share_partition)
        if writer != NO_WRITER:
            self._expected[share_partition] = (writer, 0)
        state = replace(state, parked_count=len(self._parked.get(share_partition, ())))
        if leader_epoch <= state.leader_epoch:
            return Result(state)
        state = replace(state, leader_epoch=leader_epoch)
        complete_count = state.delivery_complete_count
        write = StateWrite(state.state_epoch, leader_epoch, NO_OFFSET, (), complete_count)
        return Result(state, (self._record(share_partition, state, write, now_ms),))

    def read_summary(self, share_partition: SharePartitionKey) -> Result[ShareState]:
        """For readers without side effects, also if there is no state."""
        self._validate_share_partition(share_partition)
        state = self._states.get(share_partition) or ShareState()
        return Result(replace(state, parked_count=len(self._parked.get(share_partition, ()))))

    def read_parked(
        self, share_partition: SharePartitionKey, leader_epoch: int, first_offset: int
    ) -> Result[ParkedChange]:
        """A page of the parked records, for a leader that read the rest; empty after the last."""
        self._validate_leader_epoch(self._known(share_partition), leader_epoch)
        parked = self._parked.get(share_partition)
        return Result(NO_CHANGE if parked is None else parked.page(first_offset))

    def write(
        self, share_partition: SharePartitionKey, write: StateWrite, now_ms: int
    ) -> Result[None]:
        state = self._known(share_partition)
        self._validate_leader_epoch(state, write.leader_epoch)
        self._validate_state_epoch(state, write.state_epoch)
        self._validate_share_partition(share_partition)
        self._validate_writer(share_partition, write)
        record = self._record(share_partition, state, write, now_ms)
        if write.parked == NO_CHANGE:
            return Result(None, (record,))
        return Result(None, (record, _parked_record(share_partition, write.parked)))

    def delete(self, share_partition: SharePartitionKey) -> Result[None]:
        if share_partition not in self._states:
            return Result(None)
        return Result(None, (Record(_key(ShareSnapshotKey, share_partition), None),))

    def _parked_pages(self, share_partition: SharePartitionKey) -> Iterable[ParkedChange]:
        parked = self._parked.get(share_partition)
        return () if parked is None else parked.pages()

    def share_partitions(self) -> Iterable[SharePartitionKey]:
        return self._states.keys()

    def with_waiting_letters(self) -> Iterator[SharePartitionKey]:
        """The share-partitions with dead letters that are not known to be written."""
        for share_partition, state in self._states.items():
            parked = self._parked.get(share_partition)
            if any(batch.state is DeliveryState.ARCHIVING for batch in state.batches) or (
                parked is not None and parked.has_archiving()
            ):
                yield share_partition

    def rewrite(self, now_ms: int, share_partitions: Iterable[SharePartitionKey]) -> Result[None]:
        """Write all of these states again, so that older records of them can be pruned.

        The state of a deleted topic ends here.
        """
        records = []
        for share_partition in share_partitions:
            state = self._states.get(share_partition)
            if state is None:
                continue
            if self._catalog.topic_name(share_partition.topic_id) is None:
                records.append(Record(_key(ShareSnapshotKey, share_partition), None))
            else:
                anew = replace(state, snapshot_epoch=state.snapshot_epoch + 1)
                records.append(_snapshot_record(share_partition, anew, now_ms))
        return Result(None, tuple(records))

    def rewrite_parked(
        self, now_ms: int, share_partition: SharePartitionKey, first_offset: int
    ) -> Result[int | None]:
        """Like `rewrite`, for a page of parked records; returns where the next page begins, if any.

        Changes between two pages are also written, so that all pages together are correct.
        """
        del now_ms
        parked = self._parked.get(share_partition)
        page = NO_CHANGE if parked is None else parked.page(first_offset)
        if not page.offsets:
            return Result(None)
        last = page.offsets[-1]
        page = page._replace(removed=((first_offset, last),))
        return Result(last + 1, (_parked_record(share_partition, page),))

    def _known(self, share_partition: SharePartitionKey) -> ShareState:
        state = self._states.get(share_partition)
        if state is None:
            raise ApiError(
                ErrorCode.invalid_request,
                f"there is no state of {share_partition.coordinator_key}; it has to be initialized",
            )
        return state

    def _validate_share_partition(self, share_partition: SharePartitionKey) -> None:
        name = self._catalog.topic_name(share_partition.topic_id)
        count = None if name is None else self._catalog.partition_count(name)
        if count is None or not 0 <= share_partition.partition < count:
            raise ApiError(
                ErrorCode.unknown_topic_or_partition, f"there is no partition {share_partition[1:]}"
            )

    def _validate_writer(self, share_partition: SharePartitionKey, write: StateWrite) -> None:
        if write.writer == NO_WRITER:
            return
        if self._expected.get(share_partition) != (write.writer, write.sequence):
            raise ApiError(
                ErrorCode.fenced_leader_epoch,
                f"a write before this one (its number is {write.sequence}) is not known here",
            )
        self._expected[share_partition] = (write.writer, write.sequence + 1)

    def _validate_leader_epoch(self, state: ShareState, leader_epoch: int) -> None:
        if leader_epoch < state.leader_epoch:
            raise ApiError(
                ErrorCode.fenced_leader_epoch,
                f"leader epoch {leader_epoch} was followed by {state.leader_epoch}",
            )

    def _validate_state_epoch(self, state: ShareState, state_epoch: int) -> None:
        if state_epoch < state.state_epoch:
            raise ApiError(
                ErrorCode.fenced_state_epoch,
                f"state epoch {state_epoch} was followed by {state.state_epoch}",
            )

    def _record(
        self, share_partition: SharePartitionKey, state: ShareState, write: StateWrite, now_ms: int
    ) -> Record:
        """An update, or a snapshot after enough of them."""
        if state.update_count < self._updates_per_snapshot:
            return _update_record(share_partition, state, write)
        moved = write.start_offset != NO_OFFSET
        start_offset = write.start_offset if moved else state.start_offset
        whole = replace(
            state,
            snapshot_epoch=state.snapshot_epoch + 1,
            leader_epoch=write.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=overlay(state.batches, write.batches, start_offset),
        )
        return _snapshot_record(share_partition, whole, now_ms)


_NONE_LEFT = ParkedChange.of((), removed=((0, 2**63 - 1),))


def _share_partition(key: StateKey) -> SharePartitionKey:
    return SharePartitionKey(key.group_id, key.topic_id or UUID(int=0), key.partition)


def _key(kind: type[K], share_partition: SharePartitionKey) -> K:
    group_id, topic_id, partition = share_partition
    return kind(group_id=group_id, topic_id=topic_id, partition=partition)


def _snapshot_record(share_partition: SharePartitionKey, state: ShareState, now_ms: int) -> Record:
    return Record(
        _key(ShareSnapshotKey, share_partition),
        ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
            create_timestamp=state.create_timestamp_ms,
            write_timestamp=now_ms,
            state_batches=_batch_values(state.batches),
        ),
    )


def _parked_record(share_partition: SharePartitionKey, change: ParkedChange) -> Record:
    return Record(
        _key(ShareParkedKey, share_partition),
        ShareParkedValue(change=change.encode()),
    )


def _update_record(
    share_partition: SharePartitionKey, state: ShareState, write: StateWrite
) -> Record:
    return Record(
        _key(ShareUpdateKey, share_partition),
        ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=write.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            state_batches=_batch_values(write.batches),
        ),
    )


def _from_snapshot(value: ShareSnapshotValue) -> ShareState:
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=_batches(value.state_batches),
        create_timestamp_ms=value.create_timestamp,
    )


def _batch_values(batches: Iterable[StateBatch]) -> tuple[StateBatchValue, ...]:
    return tuple(
        StateBatchValue(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            delivery_state=batch.state,
            delivery_count=batch.delivery_count,
        )
        for batch in batches
    )


def _batches(values: Iterable[StateBatchValue]) -> tuple[StateBatch, ...]:
    return tuple(
        StateBatch(
            value.first_offset,
            value.last_offset,
            DeliveryState(value.delivery_state),
            value.delivery_count,
        )
        for value in values
    )
