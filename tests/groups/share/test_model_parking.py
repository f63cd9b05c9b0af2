"""A share-partition whose records are held, delayed and backed off, under changing leaders.

Whatever happens: no record is delivered before its time, each has one holder at a time, accepted
ones are not redelivered, and none is lost. A hold outlives its member and its leader.
"""

from collections.abc import Iterable
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kio.static.primitive import i64
from tests.groups.share.kit import Leader

from ottla.groups.share.delivery import AcknowledgeType
from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.messages.delivery_acknowledge import DeliveryAcknowledgeType

MEMBERS = st.sampled_from(["a", "b", "c"])
SKIP = DeliveryAcknowledgeType.SKIP
LIMIT = 3
LOCK_MS = 1_000
LOCKS_MAX = 20


class Held(NamedTuple):
    holder: str
    until_ms: int
    is_hold: bool
    delivery_count: int
    written_ms: int = 0  # For a hold: when another leader may hand it out.


class ParkingModel(RuleBasedStateMachine):
    key_order = False

    @initialize(dead_letters=st.booleans(), backoff_ms=st.sampled_from([0, 300]))
    def start(self, dead_letters: bool, backoff_ms: int) -> None:
        self.leader = Leader(
            lock_duration_ms=LOCK_MS,
            delivery_count_limit=LIMIT,
            record_locks_max=LOCKS_MAX,
            dead_letters=dead_letters,
            dead_letters_of_rejected=dead_letters,
            backoff_ms=backoff_ms,
            backoff_max_ms=500,
            key_order=self.key_order,
        )
        self.leader.now_ms = 1_000_000  # So that the clock can be set back.
        self.held: dict[int, Held] = {}
        self.not_before: dict[int, int] = {}
        self.counts: dict[int, int] = {}  # Deliveries of records that can be redelivered.
        self.done: set[int] = set()
        self.was_set_back = False  # The clock; records may have to wait for their time again.

    @rule(
        count=st.integers(1, 6),
        delays=st.dictionaries(st.integers(0, 5), st.sampled_from([0, 100, 900, 5_000])),
        data=st.data(),
    )
    def append(self, count: int, delays: dict[int, int], data: st.DataObject) -> None:
        now_ms = self.leader.now_ms
        delayed = [(index, now_ms + delays[index]) for index in sorted(delays) if index < count]
        keys = self.keys_of(count, data)
        batch = self.leader.append(count, delayed=delayed, keys=keys)
        for index, due_ms in delayed:
            self.not_before[batch.first_offset + index] = due_ms

    def keys_of(self, count: int, data: st.DataObject) -> list[int | None]:
        del data
        return [None] * count

    def check_order(self, acquired: Iterable[int]) -> None:
        """Called before they are recorded as held."""

    @rule(
        member=MEMBERS,
        records_max=st.integers(1, 10),
        batch_size=st.sampled_from([None, 1, 500]),
        hold_ms=st.sampled_from([0, 0, 2_000, 10_000]),
    )
    def fetch(self, member: str, records_max: int, batch_size: int | None, hold_ms: int) -> None:
        self._fetch(member, records_max, batch_size, hold_ms)

    def _fetch(self, member: str, records_max: int, batch_size: int | None, hold_ms: int) -> int:
        acquired = self.leader.acquire(member, records_max, batch_size=batch_size, hold_ms=hold_ms)
        now_ms = self.leader.now_ms
        count = 0
        self.check_order(each for low, high, _ in acquired for each in range(low, high + 1))
        for first, last, delivery_count in acquired:
            for offset in range(first, last + 1):
                assert offset not in self.held, "with one holder at a time"
                assert offset not in self.done, "not again once it was accepted"
                assert now_ms >= self.not_before.get(offset, 0), "early"
                assert delivery_count == self.counts.get(offset, 0) + 1 <= LIMIT
                self.not_before[offset] = 0  # Whatever the clock says.
                self.counts[offset] = delivery_count
                until_ms = now_ms + (hold_ms or LOCK_MS)
                is_hold = hold_ms > 0
                self.held[offset] = Held(member, until_ms, is_hold, delivery_count, until_ms)
                count += 1
        return count

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        """Like a member."""
        mine = sorted(offset for offset, held in self.held.items() if held.holder == member)
        if not mine:
            return
        chosen = sorted(data.draw(st.sets(st.sampled_from(mine), min_size=1)))
        types = {offset: data.draw(st.sampled_from(list(AcknowledgeType))) for offset in chosen}
        self.leader.acknowledge(member, *((offset, offset, (types[offset],)) for offset in chosen))
        for offset, kind in types.items():
            held = self.held.pop(offset)
            if kind is AcknowledgeType.RENEW:
                until_ms = self.leader.now_ms + LOCK_MS
                self.held[offset] = held._replace(until_ms=until_ms, written_ms=until_ms)
            elif kind is AcknowledgeType.RELEASE:
                self._released(offset, held.delivery_count, None)
            else:
                self.done.add(offset)

    def _released(self, offset: int, count: int, delay_ms: int | None) -> None:
        if count >= LIMIT:
            self.done.add(offset)
        elif delay_ms is None:
            self._wait(offset, self.leader.rules.backoff_after(count))
        else:
            self._wait(offset, delay_ms)

    def _wait(self, offset: int, delay_ms: int) -> None:
        self.not_before[offset] = self.leader.now_ms + delay_ms if delay_ms else 0

    @rule(
        kind=st.sampled_from([each for each in DeliveryAcknowledgeType if each is not SKIP]),
        delay_ms=st.sampled_from([-1, 0, 200, 3_000]),
        lock_ms=st.sampled_from([1, 1_500, 20_000]),
        liar=st.sampled_from([False, False, False, True]),
        data=st.data(),
    )
    def settle(
        self,
        kind: DeliveryAcknowledgeType,
        delay_ms: int,
        lock_ms: int,
        liar: bool,
        data: st.DataObject,
    ) -> None:
        """Like a gateway, for any earlier delivery."""
        if not self.counts:
            return
        offset = data.draw(st.sampled_from(sorted(self.counts)))
        count = data.draw(st.integers(1, self.counts[offset] or 1))
        held = self.held.get(offset)
        if self._may_be_given_up(offset):
            return
        holder = "liar" if liar else held.holder if held else "a"
        is_valid = (
            offset not in self.done
            and count == self.counts[offset]
            and (held is None or held.holder == holder)
        )

        def settle() -> None:
            self.leader.settle(
                offset, offset, holder, count, kind, delay_ms=i64(delay_ms), lock_ms=i64(lock_ms)
            )

        if not is_valid:
            with pytest.raises(ApiError) as refused:
                settle()
            assert refused.value.code is ErrorCode.invalid_record_state
            return
        settle()
        self.held.pop(offset, None)
        self._settled(offset, holder, kind, delay_ms, lock_ms)

    def _settled(
        self,
        offset: int,
        holder: str,
        kind: DeliveryAcknowledgeType,
        delay_ms: int,
        lock_ms: int,
    ) -> None:
        count = self.counts[offset]
        match kind:
            case DeliveryAcknowledgeType.RELEASE:
                self._released(offset, count, None if delay_ms < 0 else delay_ms)
            case DeliveryAcknowledgeType.RENEW:
                self.not_before[offset] = 0  # The new lock may be shorter.
                until_ms = self.leader.now_ms + lock_ms
                self.held[offset] = Held(holder, until_ms, True, count, until_ms)
            case DeliveryAcknowledgeType.PUT_BACK:
                self.counts[offset] -= 1
                self._wait(offset, 0)
            case _:
                self.done.add(offset)

    def _may_be_given_up(self, offset: int) -> bool:
        """Its last delivery was lost with a leader: the next fetch that meets it gives it up."""
        is_free = offset not in self.held and offset not in self.done
        return is_free and self.counts[offset] >= LIMIT

    @rule(back=st.integers(0, 10))
    def skip(self, back: int) -> None:
        """The group is done with all but the last records."""
        last = self.leader.end_offset - 1 - back
        if last < 0:
            return
        self.leader.settle(0, last, "", 0, SKIP)
        for offset in range(last + 1):
            self.held.pop(offset, None)
            self.done.add(offset)
        self.leader.dead_letters = list(self.leader.partition.archiving())

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.leader.release(member)
        for offset, held in list(self.held.items()):
            if held.holder == member and not held.is_hold:
                del self.held[offset]
                self._released(offset, held.delivery_count, None)

    @rule(milliseconds=st.sampled_from([1, 100, LOCK_MS // 2, LOCK_MS, 5_000]))
    def advance(self, milliseconds: int) -> None:
        self.leader.advance(milliseconds)
        for offset, held in list(self.held.items()):
            if held.until_ms <= self.leader.now_ms:
                del self.held[offset]
                self._released(offset, held.delivery_count, None)

    @rule(milliseconds=st.sampled_from([-5_000, -300, 300, 5_000]))
    def set_clock(self, milliseconds: int) -> None:
        """Locks and holds last as long as they did."""
        self.was_set_back |= milliseconds < 0
        self.leader.now_ms += milliseconds
        self.leader.partition.on_clock_set(milliseconds)
        for offset, held in self.held.items():
            self.held[offset] = held._replace(until_ms=held.until_ms + milliseconds)

    @rule()
    def change_leader(self) -> None:
        """Locks of members end, without a back-off. Holds become times."""
        self.leader.coordinator.reload()
        self.leader.load()
        for offset, held in list(self.held.items()):
            if held.is_hold:
                self.not_before[offset] = held.written_ms
            del self.held[offset]

    @rule()
    def rewrite(self) -> None:
        """The share coordinator prunes what it no longer needs."""
        coordinator = self.leader.coordinator
        keep_from = len(coordinator.log)
        machine = coordinator.machine
        coordinator.run(machine.rewrite(self.leader.now_ms, machine.share_partitions()))
        for share_partition in machine.share_partitions():
            first: int | None = 0
            while first is not None:
                first = coordinator.run(machine.rewrite_parked(0, share_partition, first))
        del coordinator.log[:keep_from]

    @rule()
    def write_dead_letters(self) -> None:
        self.leader.write_dead_letters()

    @invariant()
    def parked_records_do_not_fill_the_window(self) -> None:
        partition = self.leader.partition
        window = range(partition.start_offset, partition.end_offset)
        if all(offset in self.done for offset in window if offset in self.counts):
            assert partition.fetch_offset() is not None or self.leader.dead_letters

    def teardown(self) -> None:
        """Nothing was lost: the rest can be delivered, and then everything is done."""
        leader = self.leader
        for _ in range(400):
            leader.write_dead_letters()
            before = leader.partition.start_offset, leader.partition.parked_count
            fetched = self._fetch("a", 10, 500, 0)
            for offset, held in list(self.held.items()):
                leader.settle(offset, offset, held.holder, held.delivery_count, 1)
                self.done.add(offset)
                del self.held[offset]
            after = leader.partition.start_offset, leader.partition.parked_count
            if not fetched and before == after:
                if not leader.partition.parked_count and not leader.dead_letters:
                    break
                self.advance(1_000)
        assert leader.partition.start_offset == leader.end_offset
        assert not leader.partition.parked_count
        for offset in range(leader.end_offset):
            assert offset in self.done or self.counts[offset] >= LIMIT


TestParking = ParkingModel.TestCase
TestParking.settings = settings(max_examples=120, stateful_step_count=50)
