"""Parked records, compared with a dictionary."""

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ottla.groups.share import parked as parked_module
from ottla.groups.share.parked import NO_CHANGE, Parked, ParkedChange, ParkedRecord

OFFSETS = st.integers(0, 60)
TIMES = st.integers(0, 30)
COUNTS = st.integers(0, 5)


class ParkedModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.size, parked_module.CHUNK_RECORDS = parked_module.CHUNK_RECORDS, 4  # type: ignore[misc]
        self.parked = Parked()
        self.expected: dict[int, tuple[int, int]] = {}

    def teardown(self) -> None:
        parked_module.CHUNK_RECORDS = self.size  # type: ignore[misc]

    @rule(offset=OFFSETS, due_ms=TIMES, count=COUNTS)
    def set(self, offset: int, due_ms: int, count: int) -> None:
        self.parked.set(offset, due_ms, count)
        self.expected[offset] = (due_ms, count)

    @rule(offset=OFFSETS)
    def remove(self, offset: int) -> None:
        found = self.parked.remove(offset)
        expected = self.expected.pop(offset, None)
        assert (found and found[1:]) == expected

    @rule(first=OFFSETS, count=st.integers(0, 30))
    def remove_range(self, first: int, count: int) -> None:
        removed = [offset for offset in self.expected if first <= offset < first + count]
        assert self.parked.remove_range(first, first + count - 1) == len(removed)
        for offset in removed:
            del self.expected[offset]

    @rule(records=st.dictionaries(OFFSETS, st.tuples(TIMES, COUNTS), max_size=12))
    def apply(self, records: dict[int, tuple[int, int]]) -> None:
        self.parked.apply(ParkedChange.of(ParkedRecord(o, *r) for o, r in sorted(records.items())))
        self.expected |= records

    @rule(now_ms=TIMES, count=st.integers(1, 20))
    def due(self, now_ms: int, count: int) -> None:
        due = {offset for offset, (due_ms, _) in self.expected.items() if due_ms <= now_ms}
        found = self.parked.due(now_ms, count)
        assert set(found) <= due
        assert len(found) == len(set(found)) == min(count, len(due))

    @rule()
    def next_due(self) -> None:
        times = [due_ms for due_ms, _ in self.expected.values()]
        assert self.parked.next_due_ms() == min(times, default=None)

    @rule(size=st.integers(1, 9))
    def copy_by_pages(self, size: int) -> None:
        other = Parked()
        other.set(3, 0, 0)
        other.set(70, 0, 0)
        other.remove(70)
        for page in self.parked.pages():
            other.apply(ParkedChange.decode(page.encode()))
        if 3 not in self.expected and all(offset < 3 for offset in self.expected):
            other.remove(3)
        assert list(other.records()) == list(self.parked.records())
        assert self.parked.page(size, 3).offsets[:3] == array(
            "q", sorted(offset for offset in self.expected if offset >= size)[:3]
        )

    @invariant()
    def has_what_was_set(self) -> None:
        assert len(self.parked) == len(self.expected)
        found = {record.offset: record[1:] for record in self.parked.records()}
        assert found == self.expected
        assert list(found) == sorted(found)
        assert all(self.parked.get(offset) for offset in self.expected)


TestParked = ParkedModel.TestCase
TestParked.settings = settings(max_examples=60, stateful_step_count=40)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_change_or_a_value_error(data: bytes) -> None:
    try:
        change = ParkedChange.decode(data)
    except ValueError:
        return
    assert change.encode() == data


def test_change_is_what_it_was_after_its_bytes() -> None:
    change = ParkedChange.of([ParkedRecord(7, 2**42, 3), ParkedRecord(9, -1, 0)], [(0, 6), (8, 8)])

    assert ParkedChange.decode(change.encode()) == change
    assert ParkedChange.decode(NO_CHANGE.encode()) == NO_CHANGE
    with pytest.raises(ValueError, match="bytes"):
        ParkedChange.decode(change.encode()[:-1])


def test_heap_does_not_grow_with_what_came_and_went() -> None:
    parked = Parked()
    for offset in range(100_000):
        parked.set(offset, 1_000_000 + offset, 1)
        assert parked.next_due_ms() == 1_000_000 + offset
        parked.remove(offset)

    assert parked._heap is not None
    assert len(parked._heap) < 2_000
