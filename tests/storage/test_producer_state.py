from collections import defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.protocol.errors import ApiError, ErrorCode
from ottla.protocol.topics import TopicPartition
from ottla.records.batch import SEQUENCE_MAX, BatchHeader, read_header
from ottla.records.builder import Record, build_batch
from ottla.records.decoder import ControlType, Marker, build_marker
from ottla.storage.faulty_filesystem import FaultyFilesystem
from ottla.storage.producer_state import LastRecord, ProducerStateManager
from ottla.storage.transaction_index import AbortedTransaction

DAY_MS = 24 * 3_600_000


def batch(
    producer_id: int = 7,
    epoch: int = 0,
    sequence: int = 0,
    count: int = 1,
    *,
    transactional: bool = False,
    offset: int = 0,
    timestamp: int = 1000,
) -> bytearray:
    return build_batch(
        [Record(timestamp=timestamp, value=b"v")] * count,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def header_of(*args: int, **kwargs: Any) -> BatchHeader:
    return read_header(batch(*args, **kwargs))


def marker_batch(
    producer_id: int = 7,
    epoch: int = 0,
    *,
    offset: int,
    abort: bool = False,
    coordinator_epoch: int = 0,
) -> bytearray:
    return build_marker(
        Marker(ControlType.ABORT if abort else ControlType.COMMIT, coordinator_epoch),
        timestamp_ms=1000,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_offset=offset,
    )


class Fixture(NamedTuple):
    filesystem: FaultyFilesystem
    producers: ProducerStateManager

    def reopened(self) -> ProducerStateManager:
        return ProducerStateManager(TopicPartition("orders", 0), "/log", self.filesystem)

    def replay(self, data: bytearray) -> AbortedTransaction | None:
        return self.producers.replay(data, 0, read_header(data))

    def snapshots(self) -> tuple[int, ...]:
        return self.producers.snapshots

    def first_undecided_offset(self) -> int | None:
        return self.producers.first_undecided_offset

    def refuses(self, header: BatchHeader) -> ErrorCode:
        with pytest.raises(ApiError) as raised:
            self.producers.check(header)
        return raised.value.code


def new_fixture() -> Fixture:
    filesystem = FaultyFilesystem()
    filesystem.make_directory("/log")
    producers = ProducerStateManager(TopicPartition("orders", 0), "/log", filesystem)
    return Fixture(filesystem, producers)


@pytest.fixture
def state() -> Fixture:
    return new_fixture()


def test_sequences_follow_each_other(state: Fixture) -> None:
    assert state.producers.check(header_of(sequence=0, count=3)) is None
    state.producers.update(header_of(sequence=0, count=3), 10)
    assert state.producers.check(header_of(sequence=3)) is None
    assert state.refuses(header_of(sequence=4)) is ErrorCode.out_of_order_sequence_number
    assert state.refuses(header_of(sequence=2)) is ErrorCode.out_of_order_sequence_number


def test_an_unknown_producer_may_begin_anywhere(state: Fixture) -> None:
    assert state.producers.check(header_of(sequence=17, epoch=4)) is None
    state.producers.update(header_of(sequence=17, epoch=4), 10)
    assert state.producers.check(header_of(sequence=18, epoch=4)) is None
    assert state.refuses(header_of(sequence=0, epoch=4)) is ErrorCode.out_of_order_sequence_number


def test_sequences_wrap(state: Fixture) -> None:
    state.producers.update(header_of(sequence=SEQUENCE_MAX - 1, count=4), 10)
    assert state.producers.check(header_of(sequence=2)) is None
    duplicate = state.producers.check(header_of(sequence=SEQUENCE_MAX - 1, count=4))
    assert duplicate is not None
    assert duplicate.first_offset == 10
    state.producers.update(header_of(producer_id=8, sequence=SEQUENCE_MAX), 14)
    assert state.producers.check(header_of(producer_id=8, sequence=0)) is None


def test_a_duplicate_is_answered_with_its_offsets_among_the_last_five(state: Fixture) -> None:
    for sequence in range(6):
        state.producers.update(header_of(sequence=sequence * 2, count=2), 100 + sequence * 10)
    duplicate = state.producers.check(header_of(sequence=2, count=2))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset) == (110, 111)
    assert duplicate.timestamp == 1000
    older = header_of(sequence=0, count=2)
    assert state.refuses(older) is ErrorCode.out_of_order_sequence_number
    other_size = header_of(sequence=2, count=1)
    assert state.refuses(other_size) is ErrorCode.out_of_order_sequence_number


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero(state: Fixture) -> None:
    state.producers.update(header_of(epoch=3, sequence=5), 10)
    assert state.refuses(header_of(epoch=2, sequence=6)) is ErrorCode.invalid_producer_epoch
    skipping = header_of(epoch=4, sequence=6)
    assert state.refuses(skipping) is ErrorCode.out_of_order_sequence_number
    assert state.producers.check(header_of(epoch=4, sequence=0)) is None
    state.producers.update(header_of(epoch=4, sequence=0), 11)
    assert state.refuses(header_of(epoch=3, sequence=6)) is ErrorCode.invalid_producer_epoch
    assert state.producers.check(header_of(epoch=4, sequence=1)) is None


def test_writes_of_a_coordinator_have_an_epoch_but_no_sequence(state: Fixture) -> None:
    committed = header_of(epoch=3, sequence=-1, transactional=True)
    state.producers.check_epoch(committed)
    state.producers.update(committed, 10)
    state.producers.check_epoch(committed)
    with pytest.raises(ApiError) as raised:
        state.producers.check_epoch(header_of(epoch=2, sequence=-1))
    assert raised.value.code is ErrorCode.invalid_producer_epoch
    assert state.producers.first_undecided_offset == 10


def test_a_transaction_holds_the_stable_offset_until_its_marker_is_replicated(
    state: Fixture,
) -> None:
    assert state.producers.first_unstable_offset(0) is None
    state.replay(batch(7, offset=10, transactional=True))
    state.replay(batch(8, offset=11, transactional=True))
    state.replay(batch(7, sequence=1, offset=12, transactional=True))
    assert state.producers.first_undecided_offset == 10
    assert state.replay(marker_batch(7, offset=13)) is None
    assert state.first_undecided_offset() == 11
    assert state.producers.first_unstable_offset(13) == 10
    assert state.producers.first_unstable_offset(14) == 11
    aborted = state.replay(marker_batch(8, offset=14, abort=True))
    assert aborted == AbortedTransaction(8, 11, 14, 15)
    assert state.first_undecided_offset() is None
    assert state.producers.first_unstable_offset(14) == 11
    assert state.producers.first_unstable_offset(15) is None


def test_a_marker_without_records_completes_nothing(state: Fixture) -> None:
    assert state.replay(marker_batch(7, epoch=5, offset=10)) is None
    assert state.producers.first_unstable_offset(0) is None
    assert state.refuses(header_of(epoch=4)) is ErrorCode.invalid_producer_epoch
    assert state.refuses(header_of(epoch=5, sequence=3)) is ErrorCode.out_of_order_sequence_number
    assert state.producers.check(header_of(epoch=5, sequence=0)) is None


def test_a_marker_that_compaction_emptied_changes_nothing(state: Fixture) -> None:
    emptied = build_batch(
        [], base_offset=3, producer_id=7, producer_epoch=0, control=True, last_offset_delta=0
    )
    assert state.replay(emptied) is None
    assert len(state.producers) == 0
    assert state.replay(build_batch([Record(value=b"v")])) is None


def test_only_the_transactions_batches_while_it_is_open(state: Fixture) -> None:
    state.replay(batch(offset=10, transactional=True))
    assert state.refuses(header_of(sequence=1)) is ErrorCode.invalid_txn_state
    assert state.refuses(header_of(epoch=1)) is ErrorCode.invalid_txn_state
    assert state.producers.check(header_of(sequence=1, transactional=True)) is None


def test_markers_are_fenced_by_epochs(state: Fixture) -> None:
    state.producers.check_marker(7, 0, 0)
    state.replay(batch(epoch=2, offset=10, transactional=True))
    state.producers.check_marker(7, 2, 5)
    state.replay(marker_batch(epoch=2, offset=11, coordinator_epoch=5))
    for producer_epoch, coordinator_epoch, code in (
        (1, 5, ErrorCode.invalid_producer_epoch),
        (2, 4, ErrorCode.transaction_coordinator_fenced),
    ):
        with pytest.raises(ApiError) as raised:
            state.producers.check_marker(7, producer_epoch, coordinator_epoch)
        assert raised.value.code is code


def test_a_marker_of_version_2_is_late_if_its_epoch_has_an_open_transaction(
    state: Fixture,
) -> None:
    state.replay(batch(epoch=2, offset=10, transactional=True))
    state.producers.check_marker(7, 3, 0, transaction_version=2)
    state.replay(marker_batch(epoch=3, offset=11))
    state.producers.check_marker(7, 3, 0, transaction_version=2)
    state.replay(batch(epoch=3, offset=12, transactional=True))
    with pytest.raises(ApiError) as raised:
        state.producers.check_marker(7, 3, 0, transaction_version=2)
    assert raised.value.code is ErrorCode.invalid_producer_epoch


def test_silent_producers_expire_but_none_with_an_open_transaction(state: Fixture) -> None:
    state.replay(batch(7, offset=10, timestamp=1000))
    state.replay(batch(8, offset=11, timestamp=2000))
    state.replay(batch(9, offset=12, timestamp=1000, transactional=True))
    state.producers.expire(1000 + DAY_MS)
    assert {entry.producer_id for entry in state.producers} == {8, 9}
    assert state.producers.check(header_of(7, sequence=99)) is None


def test_snapshots_bring_the_state_back(state: Fixture) -> None:
    state.replay(batch(7, offset=10, sequence=3, count=4))
    state.replay(batch(8, offset=14, transactional=True))
    state.producers.take_snapshot(15)
    assert state.filesystem.list("/log") == ["00000000000000000015.snapshot"]
    again = state.reopened()
    assert again.truncate_and_reload(0, 20, 1000) == 15
    duplicate = again.check(header_of(7, sequence=3, count=4))
    assert duplicate is not None
    assert (duplicate.first_offset, duplicate.last_offset) == (10, 13)
    assert again.check(header_of(7, sequence=7)) is None
    assert again.first_undecided_offset == 14
    entry = again.get(8)
    assert entry is not None
    assert (entry.last_sequence, entry.last_offset, entry.producer_epoch) == (0, 14, 0)
    assert again.last_records() == {7: LastRecord(13, 0), 8: LastRecord(14, 0)}


def test_expired_producers_are_not_loaded(state: Fixture) -> None:
    state.replay(batch(7, offset=10, timestamp=1000))
    state.replay(batch(8, offset=11, timestamp=5000))
    state.replay(batch(9, offset=12, timestamp=1000, transactional=True))
    state.producers.take_snapshot(13)
    state.producers.truncate_and_reload(0, 13, 1000 + DAY_MS)
    assert {entry.producer_id for entry in state.producers} == {8, 9}


def test_a_damaged_snapshot_gives_way_to_an_older_one(state: Fixture) -> None:
    state.replay(batch(7, offset=10))
    state.producers.take_snapshot(11)
    state.replay(batch(7, offset=11, sequence=1))
    state.producers.take_snapshot(12)
    state.filesystem.flip_bit("/log/00000000000000000012.snapshot", 20)
    assert state.producers.truncate_and_reload(0, 20, 1000) == 11
    assert state.producers.snapshots == (11,)
    assert state.producers.check(header_of(7, sequence=1)) is None
    state.filesystem.flip_bit("/log/00000000000000000011.snapshot", 20)
    assert state.producers.truncate_and_reload(4, 20, 1000) == 4
    assert len(state.producers) == 0
    assert state.filesystem.list("/log") == []


def test_truncation_removes_the_snapshots_outside_the_log(state: Fixture) -> None:
    for offset in (10, 11, 12, 13):
        state.replay(batch(7, offset=offset, sequence=offset))
        state.producers.take_snapshot(offset + 1)
        state.producers.take_snapshot(offset + 1)
    assert state.producers.truncate_and_reload(11, 13, 1000) == 13
    assert state.producers.snapshots == (12, 13)
    assert state.reopened().snapshots == (12, 13)
    state.producers.truncate_fully()
    assert (len(state.producers), state.filesystem.list("/log")) == (0, [])


def test_stray_snapshots_are_removed_except_that_of_the_orderly_stop(state: Fixture) -> None:
    for offset in (10, 20, 25, 30, 35, 40):
        state.producers.take_snapshot(offset)
    state.producers.remove_stray_snapshots([10, 20, 30])
    assert state.snapshots() == (10, 20, 30, 40)
    state.producers.remove_stray_snapshots([10, 30, 50])
    assert state.snapshots() == (10, 30)
    state.producers.remove_snapshots_before(30)
    assert state.snapshots() == (30,)


def test_the_log_start_moves_past_completed_transactions(state: Fixture) -> None:
    state.replay(batch(7, offset=10, transactional=True))
    state.replay(marker_batch(7, offset=11))
    assert state.producers.first_unstable_offset(0) == 10
    state.producers.forget_replicated(12)
    assert state.producers.first_unstable_offset(0) is None


class Duplicate(NamedTuple):
    first_offset: int


class History:
    """Everything appended, searched from the beginning each time."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int, int, int]]] = defaultdict(list)
        self.epochs: dict[int, int] = {}
        self.open: dict[int, int] = {}

    def expected(self, header: BatchHeader) -> ErrorCode | Duplicate | None:
        producer_id, epoch, sequence = header[9:12]
        if producer_id not in self.epochs:
            return None
        if epoch < self.epochs[producer_id]:
            return ErrorCode.invalid_producer_epoch
        mine = [entry for entry in self.batches[producer_id] if entry[0] == epoch]
        for _, first, count, offset in mine[-5:]:
            if (sequence, header.records_count) == (first, count):
                return Duplicate(offset)
        following = mine[-1][1] + mine[-1][2] if mine else 0
        if sequence != following:
            return ErrorCode.out_of_order_sequence_number
        if producer_id in self.open and not header.is_transactional:
            return ErrorCode.invalid_txn_state
        return None

    def append(self, header: BatchHeader, offset: int) -> None:
        producer_id, epoch, sequence = header[9:12]
        self.epochs[producer_id] = epoch
        self.batches[producer_id].append((epoch, sequence, header.records_count, offset))
        if header.is_transactional:
            self.open.setdefault(producer_id, offset)


BATCHES = st.tuples(
    st.just("batch"),
    st.integers(1, 3),
    st.integers(0, 2),
    st.integers(0, 8),
    st.integers(1, 2),
    st.booleans(),
)
MARKERS = st.tuples(
    st.just("marker"), st.integers(1, 3), st.integers(0, 2), st.just(0), st.just(1), st.booleans()
)
RESTART = st.tuples(
    st.just("restart"), st.just(0), st.just(0), st.just(0), st.just(1), st.booleans()
)


def outcome(producers: ProducerStateManager, header: BatchHeader) -> ErrorCode | Duplicate | None:
    try:
        duplicate = producers.check(header)
    except ApiError as error:
        return error.code
    return Duplicate(duplicate.first_offset) if duplicate else None


@settings(max_examples=100)
@given(st.lists(st.one_of(BATCHES, BATCHES, BATCHES, MARKERS, RESTART), max_size=40))
def test_the_state_agrees_with_the_whole_history(
    steps: list[tuple[str, int, int, int, int, bool]],
) -> None:
    state, history = new_fixture(), History()
    producers = state.producers
    log: list[bytearray] = []
    end_offset = 0
    for kind, producer_id, epoch, sequence, count, flag in steps:
        if kind == "restart":
            producers = state.reopened()
            start = producers.truncate_and_reload(0, end_offset, 1000)
            for data in log:
                header = read_header(data)
                if header.base_offset >= start:
                    producers.replay(data, 0, header)
            if flag and end_offset:
                producers.take_snapshot(end_offset)
            continue
        if kind == "marker":
            if epoch < history.epochs.get(producer_id, 0):
                continue
            data = marker_batch(producer_id, epoch, offset=end_offset, abort=flag)
            first_offset = history.open.pop(producer_id, None)
            entry = producers.get(producer_id)
            assert (entry.transaction_first_offset if entry else -1) == (
                -1 if first_offset is None else first_offset
            )
            aborted = producers.replay(data, 0, read_header(data))
            assert (aborted.first_offset if aborted else None) == (first_offset if flag else None)
            history.epochs[producer_id] = epoch
            log.append(data)
            end_offset += 1
            continue
        data = batch(producer_id, epoch, sequence, count, transactional=flag, offset=end_offset)
        header = read_header(data)
        found = outcome(producers, header)
        expected = history.expected(header)
        # A snapshot keeps one batch per producer, so an older duplicate is out of order.
        if found is ErrorCode.out_of_order_sequence_number and isinstance(expected, Duplicate):
            assert producers.snapshots
            continue
        assert found == expected
        if found is None:
            producers.update(header, end_offset)
            history.append(header, end_offset)
            log.append(data)
            end_offset += count
        assert producers.first_undecided_offset == min(history.open.values(), default=None)
