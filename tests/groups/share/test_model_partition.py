"""A share-partition under consumers that fetch, acknowledge, stall and die, and changing leaders.

Whatever happens: each record has one holder at a time, acknowledged ones are not redelivered, none
is delivered more often than the limit, and none is skipped.
"""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.groups.share.kit import Leader

from ottla.groups.share.delivery import AcknowledgeType, DeliveryState

MEMBERS = st.sampled_from(["a", "b", "c"])
LIMIT = 3
LOCK_MS = 1_000
LOCKS_MAX = 20


class SharePartitionModel(RuleBasedStateMachine):
    @initialize(dead_letters=st.booleans(), of_rejected=st.booleans())
    def start(self, dead_letters: bool, of_rejected: bool) -> None:
        self.leader = Leader(
            lock_duration_ms=LOCK_MS,
            delivery_count_limit=LIMIT,
            record_locks_max=LOCKS_MAX,
            dead_letters=dead_letters,
            dead_letters_of_rejected=of_rejected,
        )
        self.held: dict[int, tuple[str, int]] = {}  # Offset to member and end of the lock.
        self.deliveries: Counter[int] = Counter()
        self.done: set[int] = set()  # Acknowledged, rejected or missing.
        self.dead: set[int] = set()  # Offsets with a dead letter.
        self.log_start_offset = 0

    @rule(count=st.integers(1, 8), deliverable=st.booleans(), hole=st.sampled_from([0, 0, 0, 2]))
    def append(self, count: int, deliverable: bool, hole: int) -> None:
        self.leader.append(count, deliverable=deliverable, hole=hole)

    @rule(
        member=MEMBERS,
        records_max=st.integers(1, 10),
        batch_size=st.sampled_from([None, 1, 3, 500]),
    )
    def fetch(self, member: str, records_max: int, batch_size: int | None) -> None:
        self._fetch(member, records_max, batch_size)

    def _fetch(self, member: str, records_max: int, batch_size: int | None) -> int:
        count = 0
        for first, last, delivery_count in self.leader.acquire(
            member, records_max, batch_size=batch_size
        ):
            for offset in range(first, last + 1):
                assert offset not in self.held, "with one member at a time"
                assert offset not in self.done, "not again once it was acknowledged"
                assert self._deliverable(offset)
                self.deliveries[offset] += 1
                assert delivery_count == self.deliveries[offset] <= LIMIT
                self.held[offset] = (member, self.leader.now_ms + LOCK_MS)
                count += 1
        assert batch_size is not None or count <= records_max
        self._collect_dead_letters()
        return count

    def _deliverable(self, offset: int) -> bool:
        return any(
            batch.deliverable and batch.first_offset <= offset <= batch.last_offset
            for batch in self.leader.batches
        )

    @rule(member=MEMBERS, data=st.data())
    def acknowledge(self, member: str, data: st.DataObject) -> None:
        mine = sorted(offset for offset, (owner, _) in self.held.items() if owner == member)
        if not mine:
            return
        chosen = sorted(data.draw(st.sets(st.sampled_from(mine), min_size=1)))
        types = {offset: data.draw(st.sampled_from(list(AcknowledgeType))) for offset in chosen}
        self.leader.acknowledge(member, *((offset, offset, (types[offset],)) for offset in chosen))
        for offset, kind in types.items():
            if kind is AcknowledgeType.RENEW:
                self.held[offset] = (member, self.leader.now_ms + LOCK_MS)
                continue
            del self.held[offset]
            if kind is not AcknowledgeType.RELEASE:
                self.done.add(offset)
        self._collect_dead_letters()

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.leader.release(member)
        self.held = {offset: lock for offset, lock in self.held.items() if lock[0] != member}
        self._collect_dead_letters()

    @rule(milliseconds=st.sampled_from([1, LOCK_MS // 2, LOCK_MS]))
    def advance(self, milliseconds: int) -> None:
        self.leader.advance(milliseconds)
        now_ms = self.leader.now_ms
        self.held = {offset: lock for offset, lock in self.held.items() if lock[1] > now_ms}
        self._collect_dead_letters()

    @rule()
    def change_leader(self) -> None:
        self.leader.coordinator.reload()
        before = self._settled()
        self.leader.load()
        self.held.clear()
        assert self._settled() == before
        self._collect_dead_letters()

    @rule()
    def write_dead_letters(self) -> None:
        self.leader.write_dead_letters()

    @rule(ahead=st.integers(1, 6))
    def remove_oldest(self, ahead: int) -> None:
        partition = self.leader.partition
        self.log_start_offset = min(partition.start_offset + ahead, self.leader.end_offset)
        self.leader.write(partition.on_log_start(self.log_start_offset))
        self.leader.dead_letters = [
            letter
            for letter in self.leader.dead_letters
            if letter.last_offset >= self.log_start_offset
        ]
        removed = range(self.log_start_offset)
        self.done.update(removed)
        for offset in removed:
            self.held.pop(offset, None)

    def _settled(self) -> dict[int, tuple[DeliveryState, int]]:
        """State and delivery count by offset, as another leader would see them."""
        return {
            offset: (run.state.written, run.delivery_count)
            for run in self.leader.partition.runs()
            for offset in range(run.first_offset, run.last_offset + 1)
        }

    def _collect_dead_letters(self) -> None:
        for letter in self.leader.dead_letters:
            offsets = range(letter.first_offset, letter.last_offset + 1)
            assert not self.held.keys() & set(offsets)
            self.dead.update(offsets)

    @invariant()
    def runs_leave_no_holes(self) -> None:
        partition = self.leader.partition
        offset = partition.start_offset
        for run in partition.runs():
            assert run.first_offset == offset
            assert run.delivery_count <= LIMIT
            offset = run.last_offset + 1
        assert offset == partition.end_offset <= self.leader.end_offset

    @invariant()
    def locks_are_what_members_hold(self) -> None:
        locked = {
            offset: (run.member_id, run.lock_until_ms)
            for run in self.leader.partition.runs()
            if run.state is DeliveryState.ACQUIRED
            for offset in range(run.first_offset, run.last_offset + 1)
        }
        assert locked == self.held

    def teardown(self) -> None:
        """Nothing was skipped: the rest can be delivered, and then everything is done."""
        leader = self.leader
        for member in ("a", "b", "c"):
            leader.release(member)
        self.held.clear()
        for _ in range(200):
            leader.write_dead_letters()
            before = leader.partition.start_offset
            fetched = self._fetch("a", 10, batch_size=500)
            # A fetch may give up records in the way, and have had no room for more before.
            is_stuck = leader.partition.start_offset == before
            if not fetched and is_stuck and not leader.dead_letters:
                break
            mine = sorted(self.held)
            if mine:
                leader.acknowledge("a", *((offset, offset, (1,)) for offset in mine))
                self.done.update(mine)
                self.held.clear()
        assert leader.partition.start_offset == leader.end_offset
        for offset in range(self.log_start_offset, leader.end_offset):
            if self._deliverable(offset) and offset not in self.done:
                assert self.deliveries[offset] == LIMIT, f"{offset} was passed over"


TestSharePartition = SharePartitionModel.TestCase
TestSharePartition.settings = settings(max_examples=80, stateful_step_count=40)
