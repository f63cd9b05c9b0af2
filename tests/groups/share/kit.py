"""A share-partition as its leader drives it: a log, a share coordinator, and manual time.

Every change is encoded as records of the share coordinator and decoded.
"""

from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

from kio.static.primitive import i8, i16, i64
from tests.groups.kit import Catalog

from ottla.groups.share.acquisition import AcquiredRange, DeliveryRules, LogBatch
from ottla.groups.share.delivery import Acknowledgement, DeadLetter
from ottla.groups.share.parked import ParkedChange
from ottla.groups.share.partition import Change, SharePartition
from ottla.groups.share.state_coordinator import SharePartitionKey, ShareStateMachine, StateWrite
from ottla.groups.share.state_records import SHARE_STATE_FAMILIES
from ottla.machine.record import Record
from ottla.machine.record_codec import FamilyCodec
from ottla.machine.result import Deferred, Result
from ottla.protocol.messages.delivery_acknowledge import Delivery

R = TypeVar("R")

PLACE = SharePartitionKey("g", UUID(int=1), 0)
CODEC = FamilyCodec(SHARE_STATE_FAMILIES)


class ShareCoordinator:
    """Drives a ShareStateMachine like the runtime."""

    def __init__(self, updates_per_snapshot: int = 3) -> None:
        self.catalog = Catalog(t=4)
        self.log: list[Record] = []
        self._updates_per_snapshot = updates_per_snapshot
        self.reload()

    def reload(self) -> None:
        self.machine = ShareStateMachine(
            catalog=self.catalog, updates_per_snapshot=self._updates_per_snapshot
        )
        for record in self.log:
            self.machine.replay(record, 0)

    def run(self, result: Result[R]) -> R:
        for record in result.records:
            written = CODEC.decode(*CODEC.encode(record))
            assert isinstance(written, Record)
            self.log.append(written)
            self.machine.replay(written, 0)
        assert not isinstance(result.response, Deferred)
        return result.response


class Leader:
    """The leader of a partition that one share group reads."""

    def __init__(self, **rules: Any) -> None:
        self.rules = DeliveryRules(**rules)
        self.coordinator = ShareCoordinator()
        self.batches: list[LogBatch] = []
        self.end_offset = 0
        self.now_ms = 0
        self.leader_epoch = 0
        self.dead_letters: list[DeadLetter] = []
        machine = self.coordinator.machine
        self.coordinator.run(machine.initialize(PLACE, 1, 0, self.now_ms))
        self.load()

    def load(self) -> None:
        """A new leader begins, with nothing but the stored state."""
        self.leader_epoch += 1
        machine = self.coordinator.machine
        state = self.coordinator.run(machine.read(PLACE, self.leader_epoch, self.now_ms))
        self.state_epoch = state.state_epoch
        pages: list[ParkedChange] = []
        first = 0
        while (page := self._parked_from(first)).offsets:
            pages.append(page)
            first = page.offsets[-1] + 1
        assert sum(len(page.offsets) for page in pages) == state.parked_count
        self.partition = SharePartition(state.start_offset, state.batches, self.rules, pages)
        self.dead_letters = list(self.partition.archiving())

    def _parked_from(self, offset: int) -> ParkedChange:
        machine = self.coordinator.machine
        return self.coordinator.run(machine.read_parked(PLACE, self.leader_epoch, offset))

    def append(
        self,
        count: int,
        *,
        deliverable: bool = True,
        hole: int = 0,
        delayed: Sequence[tuple[int, int]] = (),
        keys: Sequence[int | None] = (),
    ) -> LogBatch:
        """`delayed` has indexes in the batch, and times."""
        first = self.end_offset + hole
        numbers = {first + index: key for index, key in enumerate(keys) if key is not None}
        times = tuple((first + index, due_ms) for index, due_ms in delayed)
        batch = LogBatch(first, first + count - 1, deliverable, times, numbers)
        self.batches.append(batch)
        self.end_offset = batch.last_offset + 1
        return batch

    def acquire(
        self,
        member_id: str,
        records_max: int = 500,
        *,
        batch_size: int | None = 500,
        hold_ms: int = 0,
    ) -> tuple[AcquiredRange, ...]:
        """Like a fetch: due parked records come first."""
        if self.partition.needs_keys:
            self.partition.learn_keys(self.keys())
        if due := self.partition.due_offsets(records_max, self.now_ms):
            acquired, change = self.partition.acquire_parked(
                member_id,
                [(offset, self._has(offset)) for offset in due],
                records_max=records_max,
                now_ms=self.now_ms,
                hold_ms=hold_ms,
            )
            self.write(change)
            return acquired
        offset = self.partition.fetch_offset()
        if offset is None:
            return ()
        found = [batch for batch in self.batches if batch.last_offset >= offset]
        acquired, change = self.partition.acquire(
            member_id,
            offset,
            found,
            records_max=records_max,
            batch_size=batch_size,
            now_ms=self.now_ms,
            hold_ms=hold_ms,
        )
        self.write(change)
        return acquired

    def keys(self) -> dict[int, int]:
        return {offset: key for each in self.batches for offset, key in (each.keys or {}).items()}

    def _has(self, offset: int) -> bool:
        return any(batch.first_offset <= offset <= batch.last_offset for batch in self.batches)

    def settle(
        self, first: int, last: int, holder: str, count: int, kind: int, **terms: Any
    ) -> None:
        delivery = Delivery(
            first_offset=i64(first),
            last_offset=i64(last),
            holder=holder,
            delivery_count=i16(count),
            type=i8(kind),
            **terms,
        )
        (refused,), change = self.partition.acknowledge_deliveries(
            [delivery], self.now_ms, self.end_offset
        )
        self.write(change)
        if refused is not None:
            raise refused

    def acknowledge(
        self, member_id: str, *acknowledgements: tuple[int, int, tuple[int, ...]]
    ) -> None:
        batches = [Acknowledgement(*each) for each in acknowledgements]
        self.write(self.partition.acknowledge(member_id, batches, self.now_ms))

    def release(self, member_id: str) -> None:
        self.write(self.partition.release_member(member_id, self.now_ms))

    def advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.write(self.partition.expire(self.now_ms))

    def write_dead_letters(self) -> None:
        letters, self.dead_letters = self.dead_letters, []
        for letter in letters:
            self.write(self.partition.on_dead_letters_written([letter]))

    def write(self, change: Change) -> None:
        self.dead_letters.extend(change.dead_letters)
        if not change.is_written:
            return
        write = StateWrite(
            self.state_epoch,
            self.leader_epoch,
            change.start_offset,
            change.batches,
            self.partition.delivery_complete_count,
            change.parked,
        )
        machine = self.coordinator.machine
        self.coordinator.run(machine.write(PLACE, write, self.now_ms))
